--- Put back the wake-up that a waiting client may have taken. The client calls this when it stops waiting.
-- @key ready ZSET id -> place
-- @key state STRING packed
-- @key wake LIST
-- @key items HASH id -> data
-- @key dead ZSET id -> time of death, us
-- @key room LIST
-- @reply put boolean, 1 if an element was put on wake or on room
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(1)
local ready, state, wake, items, dead, room = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
check_argument_count(ARGV, 1)
local now = server_time()
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local max_items, signal_producer = needs_room_signal(limits, room, items, dead)
local signal_worker = call('LLEN', wake) == 0 and (next_due <= now + WAIT_CAP_US or not is_paused(flags) and call('ZCARD', ready) > 0)
signal_producer = signal_producer and call('HLEN', items) - call('ZCARD', dead) < max_items
if signal_worker or signal_producer then
  allow_writes_when_full(ready)
end
if signal_worker then
  call('LPUSH', wake, '1')
end
if signal_producer then
  call('LPUSH', room, '1')
end
return (signal_worker or signal_producer) and 1 or 0
