--- What is known of items, without their data. Read-only.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key state STRING packed
-- @arg entries integer 1..256
-- @arg entry* id
-- @reply for each entry: state, time, attempt, token, created, size, priority, max_attempts, keep, expires, error (state absent: 0, error empty)
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(1) for each entry
local call = redis.call
local items, meta, ready, delayed, leased = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, state = KEYS[6], KEYS[7]
--#part integer
local entries, at = integer(ARGV[1], 1, 256, 'the number of entries'), 2
for i = 1, entries do
  local id = ARGV[i + 1] or ''
  --#part check_id
end
at = at + entries
--#part arity
--#part read_state
--#part error_in
local reply = {}
for i = 1, entries do
  local id = ARGV[i + 1]
  local name, place, time = 'absent', nil, 0
  local tries, token, since, size, level, most, keeps, ends, text = 0, 0, 0, 0, 0, 0, 0, 0, ''
  if call('HEXISTS', items, id) == 1 then
    size = call('HSTRLEN', items, id)
    name = 'none'
    for _, zset in ipairs({{'leased', leased}, {'dead', dead}, {'delayed', delayed}, {'ready', ready}}) do
      place = call('ZSCORE', zset[2], id)
      if place then
        name = zset[1]
        break
      end
    end
    if name == 'ready' then
      -- the time it took its place
      time = 1735689600000000 + place % 1125899906842624
      since = time
    elseif place then
      time = tonumber(place)
    end
    local record = call('HGET', meta, id)
    if record then
      --#part unpack_record
      --#part unpack_tail
      --#part attempts_limit
      tries, token, since, level, most, keeps, ends = attempt, current, created, priority, max_attempts, keep, expires
      if options % 4 >= 2 then
        text = error_in(call('HGET', meta, '\0' .. id))
      end
    else
      most = struct.unpack('<I2', limits, 9)
    end
  end
  for _, value in ipairs({name, time, tries, token, since, size, level, most, keeps, ends, text}) do
    reply[#reply + 1] = value
  end
end
return reply
