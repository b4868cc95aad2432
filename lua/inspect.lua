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
local items, meta, ready, delayed, leased = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, state = KEYS[6], KEYS[7]
local ids = parse_ids(ARGV, 1)
local entries = #ids
local stored, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local reply = {}
for i = 1, entries do
  local id = ids[i]
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
      time = EPOCH_2025_US + place % PRIORITY_STEP
      since = time
    elseif place then
      time = tonumber(place)
    end
    local record = call('HGET', meta, id)
    if record then
      local options, attempt, latest_token, created = decode_record(record)
      local priority, max_attempts, keep, expires = decode_options(record, options)
      max_attempts = attempts_limit(max_attempts, limits)
      tries, token, since, level, most, keeps, ends = attempt, latest_token, created, priority, max_attempts, keep, expires
      if options % 4 >= 2 then
        text = last_error(call('HGET', meta, '\0' .. id))
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
