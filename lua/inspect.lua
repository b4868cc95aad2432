--- What is known of items, without their data. Read-only.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key state STRING packed
-- @arg entries count 1..256
-- @entry id id
-- @reply entries entries
-- @reply* state word ready|delayed|leased|dead|none|absent
-- @reply* time time_us, orders it in its state: its place, due time, deadline or time of death; 0 when it is absent
-- @reply* attempt integer
-- @reply* token token
-- @reply* created time_us
-- @reply* size integer, bytes of data
-- @reply* priority integer
-- @reply* max_attempts integer
-- @reply* keep ms
-- @reply* expires time_us, 0 when it does not
-- @reply* error bytes
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(1) for each entry
local items, meta, ready, delayed, leased = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, state = KEYS[6], KEYS[7]
local ids = parse_ids(ARGV, 1)
local entries = #ids
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local reply = {}
for i = 1, entries do
  local id = ids[i]
  local name, score, time, size = 'absent', false, 0, 0
  local attempt, token, created, last_text = 0, 0, 0, ''
  local priority, max_attempts, keep, expires = 0, 0, 0, 0
  if call('HEXISTS', items, id) == 1 then
    size = call('HSTRLEN', items, id)
    name, score = find_state(leased, dead, delayed, ready, id)
    if name == 'ready' then
      -- the time it took its place
      time = time_of_score(score)
      created = time
    elseif score then
      time = tonumber(score)
    end
    local record = call('HGET', meta, id)
    if record then
      local options
      options, attempt, token, created = decode_record(record)
      priority, max_attempts, keep, expires = decode_options(record, options)
      if has_extra(options) then
        last_text = last_error(call('HGET', meta, '\0' .. id))
      end
    end
    max_attempts = attempts_limit(max_attempts, limits)
  end
  for _, value in ipairs({name, time, attempt, token, created, size, priority, max_attempts, keep, expires, last_text}) do
    reply[#reply + 1] = value
  end
end
return reply
