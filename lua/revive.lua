--- Make dead items ready again, their attempts begun anew. Token and creation stay.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key dead ZSET id -> time of death, us
-- @key kept ZSET id -> end of its outcome, us
-- @key state STRING packed
-- @key wake LIST
-- @key counters HASH name -> count
-- @arg entries integer 1..256
-- @arg entry* id
-- @reply entry: 1, or 0 where no such item is dead
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local call = redis.call
local items, meta, ready, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local kept, state, wake, counters = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
--#part integer
--#part count
local entries, at, ids = integer(ARGV[1], 1, 256, 'the number of entries'), 2, {}
for i = 1, entries do
  local id = ARGV[i + 1] or ''
  --#part check_id
  ids[i] = id
end
at = at + entries
--#part arity
--#part clock
--#part read_state
local asleep = call('LLEN', wake) == 0
call('ZCARD', ready)
call('ZCARD', kept)
call('HLEN', counters)
local records = call('HMGET', meta, unpack(ids))
local answers, places, fresh, revived, seen = {}, {}, {}, {}, {}
for i = 1, entries do
  local id, record, level = ids[i], records[i], 0
  answers[i] = 0
  if not seen[id] and call('ZSCORE', dead, id) and call('HEXISTS', items, id) == 1 then
    if record then
      --#part unpack_record
      --#part unpack_tail
      level = priority
      fresh[#fresh + 1] = id
      fresh[#fresh + 1] = struct.pack('<BBI4dd', 1, options, 0, current, created) .. string.sub(record, 23)
    end
    clock = math.max(clock + 1, now)
    seen[id] = true
    answers[i] = 1
    revived[#revived + 1] = id
    places[#places + 1] = clock - 1735689600000000 - level * 1125899906842624
    places[#places + 1] = id
  end
end
if #revived > 0 then
  -- a no-op that the server allows when out of memory; then the counter, which damage may have made no number
  call('ZREM', dead, '')
  count_up('revived', #revived)
  call('ZREM', dead, unpack(revived))
  call('ZREM', kept, unpack(revived))
  call('ZADD', ready, unpack(places))
  if #fresh > 0 then
    call('HSET', meta, unpack(fresh))
  end
  --#part write_state
  if asleep and flags % 2 == 0 then
    call('LPUSH', wake, '1')
  end
end
return entries == 1 and answers[1] or answers
