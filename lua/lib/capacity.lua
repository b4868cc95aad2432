-- Room in a queue with a limit of items, and producers that wait for it.

-- Takes the limits of the queue and the keys. Gives the limit of items (0: none), and whether producers may be waiting for room
-- without a signal. Costs nothing where the queue has no limit.
--#inline
local function needs_room_signal(limits, room, items, dead)
  local max_items = limits == NO_LIMITS and 0 or struct.unpack('<I4', limits, 5)
  local signal_producer = max_items > 0 and call('LLEN', room) == 0
  if signal_producer then
    -- A key of another type fails here, before the first write.
    call('HLEN', items)
    call('ZCARD', dead)
  end
  return max_items, signal_producer
end

-- Takes what needs_room_signal gave, and the keys. Puts one element on `room` where there is room.
--#inline
local function signal_room(signal_producer, max_items, items, dead, ready, room)
  if signal_producer and call('HLEN', items) - call('ZCARD', dead) < max_items then
    allow_writes_when_full(ready)
    call('LPUSH', room, '1')
  end
end
