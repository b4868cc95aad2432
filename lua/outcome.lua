--- What became of items: their outcomes where they are kept. Publishes the failure of a dead item where nobody has yet.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key kept ZSET id -> end of its outcome, us
-- @key state STRING packed
-- @keys each entry: result:<id>
-- @arg entries integer 1..256
-- @arg entry* id
-- @reply for each entry: kind (result, failure, or the state of an item that has none: delayed, ready, leased, dead, none; or absent), created, ended, attempt, keep, content; fewer entries where those came to more than 4194304 bytes of content
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local call = redis.call
local items, meta, ready, delayed, leased = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, kept, state = KEYS[6], KEYS[7], KEYS[8]
local results = {unpack(KEYS, 9)}
--#part integer
local entries, at = integer(ARGV[1], 1, 256, 'the number of entries'), 2
for i = 1, entries do
  local id = ARGV[i + 1] or ''
  --#part check_id
end
at = at + entries
--#part arity
if #results ~= entries then
  error('LEASEQ_BAD_ARGUMENT outcome takes one key result:<id> for each entry', 0)
end
for i, result in ipairs(results) do
  local id = ARGV[i + 1]
  --#part check_result
end
--#part clock
--#part read_state
call('HLEN', items)
call('ZCARD', kept)
for _, result in ipairs(results) do
  call('LLEN', result)
end
local reply, changes, flags_read, size = {}, {}, flags, 0
local function change(...)
  changes[#changes + 1] = {...}
end
--#part error_in
for i = 1, entries do
  if size > 4194304 then
    -- enough for one call: the caller asks for the others again
    break
  end
  local id, result, option = ARGV[i + 1], results[i], {result = results[i]}
  local answer
  local counts = call('ZSCORE', kept, id)
  --#part read_outcome
  if call('HEXISTS', items, id) == 1 then
    local outcome_created, outcome_ended, outcome_attempt = created, ended, attempt
    local name, at_score = 'none', nil
    for _, zset in ipairs({{'leased', leased}, {'dead', dead}, {'delayed', delayed}, {'ready', ready}}) do
      local score = call('ZSCORE', zset[2], id)
      if score then
        name, at_score = zset[1], score
        break
      end
    end
    local record, since, tries, keeps = call('HGET', meta, id), 0, 0, 0
    if record then
      --#part unpack_record
      --#part unpack_tail
      since, tries, keeps = created, attempt, keep
      if name == 'dead' and found and outcome_created == created then
        answer = {'failure', created, outcome_ended, outcome_attempt, keep, string.sub(packed, 31)}
      elseif name == 'dead' then
        -- kept from the death on, not from now
        local ended, ttl = tonumber(at_score), math.min(keep, keep - math.floor((now - tonumber(at_score)) / 1000))
        if ttl > 0 and keep > 0 then
          local content = options % 4 >= 2 and error_in(call('HGET', meta, '\0' .. id)) or ''
          local kind, token = 2, current
          change('DEL', option.result)
          --#part keep_outcome
          answer = {'failure', created, ended, attempt, keep, content}
        end
      end
    end
    if not record and name == 'ready' then
      -- nothing but its place says when it was created
      since = 1735689600000000 + at_score % 1125899906842624
    end
    if not answer then
      if call('LLEN', result) > 0 then
        change('DEL', result)
      end
      if counts then
        change('ZREM', kept, id)
      end
      answer = {name, since, 0, tries, keeps, ''}
    end
  elseif found then
    answer = {kind == 1 and 'result' or 'failure', created, ended, attempt, 0, string.sub(packed, 31)}
  else
    if call('LLEN', result) > 0 then
      change('DEL', result)
    end
    answer = {'absent', 0, 0, 0, 0, ''}
  end
  for k = 1, 6 do
    reply[#reply + 1] = answer[k]
  end
  size = size + #answer[6]
end
if #changes > 0 then
  -- a no-op that the server allows when out of memory
  call('ZREM', kept, '')
  for _, each in ipairs(changes) do
    call(unpack(each))
  end
  if flags ~= flags_read then
    --#part write_state
  end
end
return reply
