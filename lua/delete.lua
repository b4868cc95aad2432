--- Delete a queue that holds nothing, with its settings and counters.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key expiry ZSET id -> time at which it goes if it was never leased, us
-- @key kept ZSET id -> time at which its outcome ends, us
-- @key state STRING packed
-- @key counters HASH name -> count
-- @key wake LIST
-- @key room LIST
-- @reply deleted boolean, 0 if there was no queue
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE LEASEQ_IN_USE
-- @complexity O(n) for outcomes whose time is over
local items, meta, ready, delayed, leased, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local expiry, kept, state, counters, wake, room = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
check_argument_count(ARGV, 1)
local now = server_time()
-- A key of another type fails here: another program uses it.
for _, key in ipairs({ready, delayed, leased, dead, expiry, kept}) do
  call('ZCARD', key)
end
call('HLEN', counters)
call('LLEN', wake)
call('LLEN', room)
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
if call('HLEN', items) > 0 or call('HLEN', meta) > 0 then
  error('LEASEQ_IN_USE the queue holds items: complete, remove or purge them first', 0)
end
if call('ZCOUNT', kept, string.format('(%.0f', now), '+inf') > 0 then
  error('LEASEQ_IN_USE outcomes of the queue are kept: delete it when their time is over', 0)
end
-- A new queue starts its clock at the server's time: a token could come a second time.
if clock > now then
  error('LEASEQ_IN_USE the clock of the queue is ahead of the server\'s: delete it later', 0)
end
return call('DEL', items, meta, ready, delayed, leased, dead, expiry, kept, state, counters, wake, room) > 0 and 1 or 0
