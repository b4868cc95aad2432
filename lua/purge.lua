--- Drop dead items.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key dead ZSET id -> time of death, us
-- @key counters HASH name -> count
-- @arg older_than integer 0..315360000000, ms: only those that died so long ago
-- @arg entries integer 1..256
-- @arg entry* id
-- @reply entry: 1, or 0 where no such item is dead for so long
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local call = redis.call
local items, meta, dead, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
--#part integer
--#part count
local older_than = integer(ARGV[1], 0, 315360000000, 'older_than')
local entries, at, ids = integer(ARGV[2], 1, 256, 'the number of entries'), 3, {}
for i = 1, entries do
  local id = ARGV[i + 2] or ''
  --#part check_id
  ids[i] = id
end
at = at + entries
--#part arity
--#part clock
call('HLEN', meta)
call('HLEN', counters)
local answers, purged, seen = {}, {}, {}
for i, id in ipairs(ids) do
  local died = call('ZSCORE', dead, id)
  answers[i] = 0
  if died and not seen[id] and tonumber(died) <= now - older_than * 1000 and call('HEXISTS', items, id) == 1 then
    seen[id] = true
    answers[i] = 1
    purged[#purged + 1] = id
  end
end
if #purged > 0 then
  -- a no-op that the server allows when out of memory; then the counter, which damage may have made no number
  call('ZREM', dead, '')
  count_up('purged', #purged)
  call('ZREM', dead, unpack(purged))
  call('HDEL', items, unpack(purged))
  for _, id in ipairs(purged) do
    call('HDEL', meta, id, '\0' .. id)
  end
end
return entries == 1 and answers[1] or answers
