--- Lease from the first of several queues of one group that has something ready, in the order of the call.
-- @keys each queue: items meta ready delayed leased dead expiry state wake room counters
-- @arg queues count 1..16, each brings its keys
-- @arg count integer 1..256
-- @arg duration ms 1..2592000000
-- @reply queue integer, the number of the queue that gave items; 0 when none did
-- @reply leased lease, its wait is the least of all
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each item leased, promoted or reclaimed, and for each queue
local keys = {unpack(KEYS, 1)}
local queues = parse_integer(ARGV[1], 1, MAX_QUEUES, 'the number of queues')
local count = parse_integer(ARGV[2], 1, MAX_ENTRIES, 'count')
local duration = parse_integer(ARGV[3], 1, MAX_LEASE_MS, 'duration, in milliseconds,')
if #ARGV ~= 3 or #keys ~= KEYS_PER_QUEUE * queues then
  error('LEASEQ_BAD_ARGUMENT lease_any takes queues, count and duration, and eleven keys for each queue', 0)
end
local now = server_time()
local function lease(first)
  local items, meta, ready, delayed, leased, dead = unpack(keys, first, first + 5)
  local expiry, state, wake, room, counters = unpack(keys, first + 6, first + 10)
  local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
  local no_wake_pending = call('LLEN', wake) == 0
  local max_items, signal_producer = needs_room_signal(limits, room, items, dead)
  local queue = {
    items = items, meta = meta, ready = ready, delayed = delayed, leased = leased, dead = dead,
    expiry = expiry, state = state, wake = wake, room = room, counters = counters,
    flags = flags, clock = clock, next_due = next_due, largest = largest, added = added, leases = leases,
    limits = limits, next_due_read = next_due, max_items = max_items,
    no_wake_pending = no_wake_pending, signal_producer = signal_producer,
  }
  local reply, changed = reclaim_and_lease(queue, now, count, duration)
  return reply, changed, queue.next_due ~= next_due or signal_producer and call('LLEN', room) > 0
end
-- A worker that leases from one queue no longer waits on the others: a wake-up that it took of them is passed on.
local function settle(first)
  local items, ready, state, wake = keys[first], keys[first + 2], keys[first + 7], keys[first + 8]
  local _, flags, _, next_due, _, _, _, _ = load_state(state, items)
  if call('LLEN', wake) == 0 and (next_due <= now + WAIT_CAP_US or not is_paused(flags) and call('ZCARD', ready) > 0) then
    call('LPUSH', wake, '1')
  end
end
local wait, wrote, died = -1, false, {}
local function numbered(number, lease_reply)
  local reply = {number}
  for _, part in ipairs({lease_reply, died}) do
    for _, each in ipairs(part) do
      reply[#reply + 1] = each
    end
  end
  return reply
end
for number = 1, queues do
  local ok, reply, moved, stored = pcall(lease, KEYS_PER_QUEUE * (number - 1) + 1)
  if not ok and not wrote then
    error(reply, 0)
  end
  if not ok then
    -- What an earlier queue did must not look undone: nothing for now, the next call finds the error first.
    return numbered(0, {0, 0, 0})
  end
  wrote = wrote or moved or stored
  while reply[#reply - 2] == 0 and reply[#reply - 1] == 'died' do
    local id = table.remove(reply)
    died[#died + 1] = -number
    died[#died + 1] = table.remove(reply)
    died[#died + 1] = id
    table.remove(reply)
  end
  if reply[3] > 0 then
    for other = 1, queues do
      if other ~= number then
        pcall(settle, KEYS_PER_QUEUE * (other - 1) + 1)
      end
    end
    return numbered(number, reply)
  end
  if reply[1] == 0 or moved then
    -- enough for one call; and where more is left, the order says that this queue is asked again before the next
    return numbered(0, {0, 0, 0})
  end
  if wait < 0 or reply[1] > 0 and reply[1] < wait then
    wait = reply[1]
  end
end
return numbered(0, {wait, 0, 0})
