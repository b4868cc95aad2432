--- What became of items: their outcomes where they are kept. Publishes the failure of a dead item if no call has yet.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key kept ZSET id -> end of its outcome, us
-- @key state STRING packed
-- @keys each entry: result:<id>
-- @arg entries count 1..256
-- @entry id id
-- @reply entries rest, fewer than were asked for where they came to more than 4194304 bytes of content
-- @reply* kind word result|failure|delayed|ready|leased|dead|none|absent
-- @reply* created time_us
-- @reply* ended time_us
-- @reply* attempt integer
-- @reply* keep ms, how long the outcome will be kept; 0 if it will not
-- @reply* content bytes, the result, or the last error
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local items, meta, ready, delayed, leased = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, kept, state = KEYS[6], KEYS[7], KEYS[8]
local result_keys = {unpack(KEYS, 9)}
local ids = parse_ids(ARGV, 1)
local entries = #ids
if #result_keys ~= entries then
  error('LEASEQ_BAD_ARGUMENT outcome takes one key result:<id> for each entry', 0)
end
for i, result_key in ipairs(result_keys) do
  local id = ids[i]
  check_result_key(result_key, id)
end
local now = server_time()
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
-- A key of another type fails here, before the first write.
call('HLEN', items)
call('ZCARD', kept)
for _, result_key in ipairs(result_keys) do
  -- A key of another type fails here, before the first write.
  call('LLEN', result_key)
end
local reply, changes, flags_read, size = {}, {}, flags, 0
local function change(...)
  changes[#changes + 1] = {...}
end
for i = 1, entries do
  if size > MAX_OUTCOME_BYTES then
    -- enough for one call: the caller asks for the others again
    break
  end
  local id, result_key = ids[i], result_keys[i]
  local answer
  local is_kept = call('ZSCORE', kept, id)
  local outcome, kind, attempt, token, created, ended = load_outcome(result_key, is_kept)
  if call('HEXISTS', items, id) == 1 then
    local outcome_created, outcome_ended, outcome_attempt = created, ended, attempt
    local name, score = find_state(leased, dead, delayed, ready, id)
    local record, item_created, item_attempt, item_keep = call('HGET', meta, id), 0, 0, 0
    if record then
      local options, attempt, latest_token, created = decode_record(record)
      local _, _, keep, _ = decode_options(record, options)
      item_created, item_attempt, item_keep = created, attempt, keep
      if name == 'dead' and outcome and outcome_created == created then
        answer = {'failure', created, outcome_ended, outcome_attempt, keep, string.sub(outcome, CONTENT_AT)}
      elseif name == 'dead' then
        -- kept from the death on, not from now
        local ended = tonumber(score)
        local ttl = math.min(keep, keep - math.floor((now - ended) / 1000))
        if ttl > 0 and keep > 0 then
          local content = has_extra(options) and last_error(call('HGET', meta, '\0' .. id)) or ''
          change('DEL', result_key)
          store_outcome(change, kept, id, result_key, now, ttl, FAILURE, attempt, latest_token, created, ended, content)
          flags = with_outcomes_flag(flags)
          answer = {'failure', created, ended, attempt, keep, content}
        end
      end
    end
    if not record and name == 'ready' then
      -- nothing but its place says when it was created
      item_created = time_of_score(score)
    end
    if not answer then
      if call('LLEN', result_key) > 0 then
        change('DEL', result_key)
      end
      if is_kept then
        change('ZREM', kept, id)
      end
      answer = {name, item_created, 0, item_attempt, item_keep, ''}
    end
  elseif outcome then
    answer = {kind == 1 and 'result' or 'failure', created, ended, attempt, 0, string.sub(outcome, CONTENT_AT)}
  else
    if call('LLEN', result_key) > 0 then
      change('DEL', result_key)
    end
    answer = {'absent', 0, 0, 0, 0, ''}
  end
  for k = 1, 6 do
    reply[#reply + 1] = answer[k]
  end
  size = size + #answer[6]
end
if #changes > 0 then
  allow_writes_when_full(kept)
  for _, each in ipairs(changes) do
    call(unpack(each))
  end
  if flags ~= flags_read then
    save_state(state, flags, clock, next_due, largest, added, leases, limits)
  end
end
return reply
