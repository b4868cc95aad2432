--- Drop dead items.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key dead ZSET id -> time of death, us
-- @key counters HASH name -> count
-- @arg older_than ms 0..315360000000, only items that died at least this long ago
-- @arg entries count 1..256
-- @entry id id
-- @reply entries each
-- @reply* purged boolean, 0 if no such item has been dead for that time
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local items, meta, dead, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local older_than = parse_integer(ARGV[1], 0, MAX_SPAN_MS, 'older_than')
local ids = parse_ids(ARGV, 2)
local entries = #ids
local now = server_time()
-- A key of another type fails here, before the first write.
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
  -- the counter first, which damage may have made no number
  allow_writes_when_full(dead)
  increment_counter(counters, 'purged', #purged)
  call('ZREM', dead, unpack(purged))
  call('HDEL', items, unpack(purged))
  for _, id in ipairs(purged) do
    call('HDEL', meta, id, '\0' .. id)
  end
end
return entries == 1 and answers[1] or answers
