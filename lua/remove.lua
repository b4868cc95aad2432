--- Remove items in any state. The next call of a holder finds that its lease is lost.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key expiry ZSET id -> time at which it goes if it was never leased, us
-- @key counters HASH name -> count
-- @arg entries count 1..256
-- @entry id id
-- @reply entries each
-- @reply* state word ready|delayed|leased|dead|none|absent, the state it was in; none if damage had left it in no state
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local items, meta, ready, delayed, leased = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, expiry, counters = KEYS[6], KEYS[7], KEYS[8]
local ids = parse_ids(ARGV, 1)
local entries = #ids
-- A key of another type fails here, before the first write.
call('HLEN', meta)
call('HLEN', counters)
call('ZCARD', ready)
call('ZCARD', delayed)
call('ZCARD', leased)
call('ZCARD', dead)
call('ZCARD', expiry)
local answers, removed, found = {}, 0, {}
for i = 1, entries do
  local id = ids[i]
  if not found[id] and call('HEXISTS', items, id) == 1 then
    found[id] = true
    removed = removed + 1
  end
end
if removed > 0 then
  -- The counter comes first: a damaged one must not stop the script between two states of an item.
  allow_writes_when_full(ready)
  increment_counter(counters, 'removed', removed)
end
for i = 1, entries do
  local id = ids[i]
  if not found[id] then
    answers[i] = 'absent'
  else
    found[id] = nil
    if call('ZREM', ready, id) == 1 then
      answers[i] = 'ready'
    elseif call('ZREM', leased, id) == 1 then
      answers[i] = 'leased'
    elseif call('ZREM', delayed, id) == 1 then
      answers[i] = 'delayed'
    elseif call('ZREM', dead, id) == 1 then
      answers[i] = 'dead'
    else
      answers[i] = 'none'
    end
    call('HDEL', items, id)
    call('HDEL', meta, id, '\0' .. id)
    call('ZREM', expiry, id)
  end
end
return entries == 1 and answers[1] or answers
