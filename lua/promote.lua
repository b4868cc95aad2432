--- Make delayed items ready now. Attempts, token and creation stay.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key state STRING packed
-- @key wake LIST
-- @key counters HASH name -> count
-- @arg entries count 1..256
-- @entry id id
-- @reply entries each
-- @reply* promoted boolean, 0 if no such item is delayed
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local items, meta, ready, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local leased, state, wake, counters = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local ids = parse_ids(ARGV, 1)
local now = server_time()
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local no_wake_pending = call('LLEN', wake) == 0
-- A key of another type fails here, before the first write.
call('ZCARD', ready)
call('ZCARD', leased)
call('HLEN', counters)
local records = call('HMGET', meta, unpack(ids))
local answers, promoted, scores
answers, promoted, scores, clock = plan_ready(ids, records, delayed, items, clock, now)
if #promoted > 0 then
  -- The counter comes first: a damaged one must not stop the script between two states of an item.
  allow_writes_when_full(delayed)
  increment_counter(counters, 'promoted', #promoted)
  call('ZREM', delayed, unpack(promoted))
  call('ZADD', ready, unpack(scores))
  next_due = read_next_due(delayed, leased)
  save_state(state, flags, clock, next_due, largest, added, leases, limits)
  if no_wake_pending and not is_paused(flags) then
    call('LPUSH', wake, '1')
  end
end
return #ids == 1 and answers[1] or answers
