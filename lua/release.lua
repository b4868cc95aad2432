--- Release leased items: they become ready, delayed or dead. Only the current token can.
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key state STRING packed
-- @key wake LIST
-- @key counters HASH name -> count
-- @key items HASH id -> data
-- @key kept ZSET id -> end of its outcome, us
-- @keys each entry with keep: result:<id>
-- @arg entries count 1..256
-- @entry id id
-- @entry token token
-- @entry options options
-- @option delay ms 0..315360000000 = 0, from now until it can be leased again (LQ-RELEASE-2)
-- @option uncounted flag, the attempt does not count, and the item gets its place by creation time back (LQ-RELEASE-4)
-- @option error bytes, its last error from now on, cut at 8192 bytes (LQ-DEAD-2); an empty one clears it
-- @option dead flag, make it dead, whatever its attempts (LQ-DEAD-1); not with delay or uncounted
-- @option keep kept_ms 0..315360000000, how long its failure is kept if it dies; 0: as the item was added (LQ-OUTCOME-3)
-- @reply entries each
-- @reply* state word ready|delayed|dead|lost
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local meta, ready, delayed, leased, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local state, wake, counters, items, kept = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local result_keys = {unpack(KEYS, 11)}
local now = server_time()
local entries, at = parse_integer(ARGV[1], 1, MAX_ENTRIES, 'the number of entries'), 2
local ids, tokens, given, keeping = {}, {}, {}, 0
for i = 1, entries do
  local id, token_text = ARGV[at] or '', ARGV[at + 1] or ''
  check_id(id)
  local token = parse_token(token_text)
  ids[i], tokens[i] = id, token
  local options, count = {}, parse_integer(ARGV[at + 2], 0, 5, 'the number of options')
  at = at + 3
  for _ = 1, count do
    local name, value = ARGV[at], ARGV[at + 1]
    if name == 'delay' and not options.delay then
      options.delay = parse_integer(value, 0, MAX_SPAN_MS, 'delay')
      if now + options.delay * 1000 >= LATEST_TIME_US then
        error('LEASEQ_BAD_ARGUMENT an item cannot become due after 2059', 0)
      end
    elseif (name == 'uncounted' or name == 'dead') and value == '1' and not options[name] then
      options[name] = true
    elseif name == 'error' and value and not options.error then
      options.error = value
    elseif name == 'keep' and not options.keep then
      options.keep = parse_integer(value, 0, MAX_SPAN_MS, 'keep')
      keeping = keeping + 1
      local result_key = result_keys[keeping]
      check_result_key(result_key, id)
      options.result_key = result_key
    else
      error('LEASEQ_BAD_ARGUMENT release takes delay, uncounted (1), error, dead (1) and keep, once each', 0)
    end
    at = at + 2
  end
  if options.dead and (options.delay or options.uncounted) then
    error('LEASEQ_BAD_ARGUMENT a release that kills takes neither delay nor uncounted', 0)
  end
  given[i] = options
end
check_argument_count(ARGV, at)
if #result_keys ~= keeping then
  error('LEASEQ_BAD_ARGUMENT release takes one key result:<id> for each entry with the option keep', 0)
end
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local no_wake_pending = call('LLEN', wake) == 0
-- A key of another type fails here, before the first write.
call('ZCARD', ready)
call('ZCARD', delayed)
call('ZCARD', dead)
call('HLEN', counters)
if keeping > 0 then
  -- A key of another type fails here, before the first write.
  call('ZCARD', kept)
  for _, result_key in ipairs(result_keys) do
    -- A key of another type fails here, before the first write.
    call('LLEN', result_key)
  end
end
local records, soonest, died = call('HMGET', meta, unpack(ids)), next_due, 0
local answers, released, seen, changes = {}, {}, {}, {}
local function change(...)
  changes[#changes + 1] = {...}
end
for i = 1, entries do
  local id, record, option = ids[i], records[i], given[i]
  answers[i] = 'lost'
  if record then
    local options, attempt, latest_token, created = decode_record(record)
    if tokens[i] == latest_token and not seen[id] and call('ZSCORE', leased, id) then
      seen[id] = true
      released[#released + 1] = id
      local priority, max_attempts, keep, expires = decode_options(record, options)
      local extra = has_extra(options) and call('HGET', meta, '\0' .. id)
      if option.error then
        extra = set_last_error(extra, truncate_error(option.error))
        change('HSET', meta, '\0' .. id, extra)
      end
      if option.uncounted or option.error and not has_extra(options) then
        local attempts = option.uncounted and math.max(0, attempt - 1) or attempt
        local bits = options
        if option.error and not has_extra(options) then
          bits = math.max(options, HAS_OPTIONS) + HAS_EXTRA
        end
        local new_record = encode_record(bits, attempts, latest_token, created)
        if bits > 0 then
          local encoded_options = encode_options(priority, max_attempts, keep, expires)
          new_record = new_record .. encoded_options
        end
        change('HSET', meta, id, new_record)
      end
      max_attempts = attempts_limit(max_attempts, limits)
      local delay = option.delay or 0
      if option.dead or not option.uncounted and max_attempts > 0 and attempt >= max_attempts then
        answers[i] = 'dead'
        died = died + 1
        change('ZADD', dead, now, id)
        local ttl = option.keep and (option.keep > 0 and option.keep or keep) or 0
        if ttl > 0 then
          local content = last_error(extra)
          change('DEL', option.result_key)
          store_outcome(change, kept, id, option.result_key, now, ttl, FAILURE, attempt, latest_token, created, now, content)
          flags = with_outcomes_flag(flags)
        end
      elseif delay > 0 then
        answers[i] = 'delayed'
        soonest = math.min(soonest, now + delay * 1000)
        change('ZADD', delayed, now + delay * 1000, id)
      else
        answers[i] = 'ready'
        clock = next_token(clock, now)
        local score = ready_score(option.uncounted and created or clock, priority)
        change('ZADD', ready, score, id)
      end
    end
  end
end
if #released > 0 then
  -- The counters come first: a damaged one must not stop the script between two states of an item.
  allow_writes_when_full(leased)
  increment_counter(counters, 'released', #released)
  if died > 0 then
    increment_counter(counters, 'died', died)
  end
  call('ZREM', leased, unpack(released))
  for _, each in ipairs(changes) do
    call(unpack(each))
  end
  local due_sooner = soonest < next_due or next_due == 0
  next_due = soonest
  save_state(state, flags, clock, next_due, largest, added, leases, limits)
  if no_wake_pending and (due_sooner or not is_paused(flags) and call('ZCARD', ready) > 0) then
    call('LPUSH', wake, '1')
  end
end
return entries == 1 and answers[1] or answers
