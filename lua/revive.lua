--- Make dead items ready again, with 0 attempts. Token and creation stay.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key dead ZSET id -> time of death, us
-- @key kept ZSET id -> end of its outcome, us
-- @key state STRING packed
-- @key wake LIST
-- @key counters HASH name -> count
-- @arg entries count 1..256
-- @entry id id
-- @reply entries each
-- @reply* revived boolean, 0 if no such item is dead
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local items, meta, ready, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local kept, state, wake, counters = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local ids = parse_ids(ARGV, 1)
local now = server_time()
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local no_wake_pending = call('LLEN', wake) == 0
-- A key of another type fails here, before the first write.
call('ZCARD', ready)
call('ZCARD', kept)
call('HLEN', counters)
local records = call('HMGET', meta, unpack(ids))
local answers, revived, scores
answers, revived, scores, clock = plan_ready(ids, records, dead, items, clock, now)
local new_records = {}
for i, id in ipairs(ids) do
  local record = records[i]
  if answers[i] == 1 and record then
    new_records[#new_records + 1] = id
    new_records[#new_records + 1] = string.sub(record, 1, BEFORE_ATTEMPT) .. '\0\0\0\0' .. string.sub(record, TOKEN_AT)
  end
end
if #revived > 0 then
  -- The counter comes first: a damaged one must not stop the script between two states of an item.
  allow_writes_when_full(dead)
  increment_counter(counters, 'revived', #revived)
  call('ZREM', dead, unpack(revived))
  call('ZREM', kept, unpack(revived))
  call('ZADD', ready, unpack(scores))
  if #new_records > 0 then
    call('HSET', meta, unpack(new_records))
  end
  save_state(state, flags, clock, next_due, largest, added, leases, limits)
  if no_wake_pending and not is_paused(flags) then
    call('LPUSH', wake, '1')
  end
end
return #ids == 1 and answers[1] or answers
