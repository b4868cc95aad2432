--- Look at one page of the queue and repair damage, while clients use the queue. Healthy items do not change.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key expiry ZSET id -> time at which it goes if it was never leased, us
-- @key kept ZSET id -> end of its outcome, us
-- @key state STRING packed
-- @key wake LIST
-- @key counters HASH name -> count
-- @arg cursor text, 0 for the first page, then the cursor of the last reply, until that is 0
-- @arg limit integer 1..256, how many entries to look at
-- @arg dry_run boolean, 1 counts what would be repaired and writes nothing
-- @reply cursor text, of the next page; 0: this was the last one
-- @reply repairs named, how often each kind of damage was found
-- @reply* unplaced integer
-- @reply* several_states integer
-- @reply* far_deadline integer
-- @reply* bad_time integer
-- @reply* unmeasured integer
-- @reply* record_without_item integer
-- @reply* bad_record integer
-- @reply* dropped integer
-- @reply* clock integer
-- @reply* next_due integer
-- @reply* state integer
-- @reply* bad_extra integer
-- @reply* unindexed integer
-- @reply* stale_index integer
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(limit * log n)
local items, meta, ready, delayed, leased = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, expiry, kept = KEYS[6], KEYS[7], KEYS[8]
local state, wake, counters = KEYS[9], KEYS[10], KEYS[11]
local phase, cursor = string.match(ARGV[1] == '0' and '1:0' or ARGV[1] or '', '^([1-8]):(%d+)$')
if not phase or #cursor > 20 or #cursor == 20 and cursor > '18446744073709551615' then
  error('LEASEQ_BAD_ARGUMENT cursor must be 0 or what the last deep_clean answered', 0)
end
local limit = parse_integer(ARGV[2], 1, MAX_ENTRIES, 'limit')
local dry_run = parse_integer(ARGV[3], 0, 1, 'dry_run') == 1
check_argument_count(ARGV, 4)
local now = server_time()
local stored, flags, clock, next_due, largest, added, leases, limits = decode_state(state, items)
local no_wake_pending = call('LLEN', wake) == 0
local held = call('HLEN', items)
-- A key of another type fails here, before the first write.
call('HLEN', meta)
call('HLEN', counters)
local zsets = {ready, delayed, leased, dead, expiry, kept}
for _, zset in ipairs(zsets) do
  -- A key of another type fails here, before the first write.
  call('ZCARD', zset)
end
local kinds = {
  'unplaced', 'several_states', 'far_deadline', 'bad_time', 'unmeasured', 'record_without_item', 'bad_record', 'dropped', 'clock',
  'next_due', 'state', 'bad_extra', 'unindexed', 'stale_index',
}
local repairs, changes = {}, {}
local function repair(kind, ...)
  repairs[kind] = (repairs[kind] or 0) + 1
  if ... then
    changes[#changes + 1] = {...}
  end
end
local due_now = false
if clock ~= clock or clock >= LATEST_TIME_US then
  -- Not a time (it may not even be a number). Items that the pass finds raise it again.
  clock = now
  repairs.clock = 1
end
local function raise_clock(seen)
  if seen > clock then
    clock = seen
    repairs.clock = 1
  end
end
-- Takes a record. Gives its fields, nil if it is damaged. A record of a newer version ends the pass with LEASEQ_FORMAT.
local function sound_record(record)
  if not record or #record < RECORD_BYTES then
    return nil
  end
  local format, bits = string.byte(record, 1, 2)
  if format == FORMAT_VERSION and (bits == 0 or bits <= ALL_OPTIONS and bits % 2 == 1) then
    if #record ~= (bits == 0 and RECORD_BYTES or RECORD_WITH_OPTIONS_BYTES) then
      return nil
    end
    local latest, first = struct.unpack('<dd', record, 7)
    if not (latest >= 0 and latest < LATEST_TIME_US and first >= 0 and first < LATEST_TIME_US) then
      -- Not times. A clock raised to them would make every later place and token wrong.
      return nil
    end
  end
  local options, _, latest_token, created = decode_record(record)
  local priority, _, _, expires = decode_options(record, options)
  local sound = expires >= 0 and expires < LATEST_TIME_US and expires % 1 == 0 and (expires == 0 or latest_token == 0)
  if math.abs(priority) > 7 or not sound then
    return nil
  end
  return {options = options, latest_token = latest_token, created = created, priority = priority, expires = expires}
end
local function priority_of(id)
  local known = sound_record(call('HGET', meta, id))
  return known and known.priority or 0
end

local page
if phase == '1' then
  page = redis.pcall('HSCAN', items, cursor, 'COUNT', limit, 'NOVALUES')
  if page.err then
    -- An older server sends the data along: ask for as many as make about 1 MiB on average.
    local bytes = held > 0 and call('MEMORY', 'USAGE', items) or 1
    local count = math.min(limit, math.floor(MAX_BATCH_BYTES * held / bytes))
    if largest < UNKNOWN_SIZE then
      -- an average hides the few that are large
      count = math.min(count, math.floor(MAX_OUTCOME_BYTES / math.max(1, largest)))
    end
    count = math.max(1, count)
    page = call('HSCAN', items, cursor, 'COUNT', count)
    for i = 1, #page[2] / 2 do
      page[2][i] = page[2][2 * i - 1]
    end
    for i = #page[2], #page[2] / 2 + 1, -1 do
      page[2][i] = nil
    end
  end
  for _, id in ipairs(page[2]) do
    local found_in, first_score = {}, nil
    for _, zset in ipairs({leased, dead, delayed, ready}) do
      local score = call('ZSCORE', zset, id)
      if score then
        found_in[#found_in + 1] = zset
        first_score = first_score or score
      end
    end
    if not first_score then
      clock = next_token(clock, now)
      local score = ready_score(clock, priority_of(id))
      repair('unplaced', 'ZADD', ready, score, id)
    elseif #found_in > 1 then
      repair('several_states', 'ZREM', found_in[2], id)
      for i = 3, #found_in do
        changes[#changes + 1] = {'ZREM', found_in[i], id}
      end
    end
    if found_in[1] == leased and tonumber(first_score) > now + FAR_DEADLINE_US then
      repair('far_deadline', 'ZADD', leased, now, id)
      due_now = true
    end
    local size = call('HSTRLEN', items, id)
    if size > largest then
      largest = size
      repair('unmeasured')
    end
  end
elseif phase == '2' then
  page = call('HSCAN', meta, cursor, 'COUNT', limit)
  for i = 1, #page[2], 2 do
    local id, record = page[2][i], page[2][i + 1]
    if string.byte(id) == 0 then
      local known = sound_record(call('HGET', meta, string.sub(id, 2)))
      if not known or not has_extra(known.options) or call('HEXISTS', items, string.sub(id, 2)) == 0 then
        repair('bad_extra', 'HDEL', meta, id)
      end
    elseif call('HEXISTS', items, id) == 0 then
      repair('record_without_item', 'HDEL', meta, id)
    else
      local known = sound_record(record)
      if not known then
        repair('bad_record', 'HDEL', meta, id)
      else
        raise_clock(math.max(known.latest_token, known.created))
        if has_extra(known.options) and call('HEXISTS', meta, '\0' .. id) == 0 then
          repair('bad_extra', 'HSET', meta, '\0' .. id, '\0\0')
        end
        if known.expires > 0 and tonumber(call('ZSCORE', expiry, id) or 0) ~= known.expires then
          repair('unindexed', 'ZADD', expiry, string.format('%.0f', known.expires), id)
        end
      end
    end
  end
else
  local zset = zsets[phase - 2]
  page = call('ZSCAN', zset, cursor, 'COUNT', limit)
  for i = 1, #page[2], 2 do
    local id, score = page[2][i], tonumber(page[2][i + 1])
    local priority = -math.floor(score / PRIORITY_STEP)
    local time = zset == ready and time_of_score(score) or score
    local possible = time >= 0 and time < LATEST_TIME_US and (zset ~= ready or priority >= -7 and priority <= 7 and time % 1 == 0)
    if zset == expiry then
      local known = sound_record(call('HGET', meta, id))
      if not known or known.expires ~= score or call('HEXISTS', items, id) == 0 then
        repair('stale_index', 'ZREM', expiry, id)
      end
    elseif zset == kept then
      if call('HEXISTS', items, id) == 1 and not call('ZSCORE', dead, id) then
        -- the outcome of an earlier item
        repair('stale_index', 'ZREM', kept, id)
      elseif not (score >= 0 and score < NEVER) then
        repair('bad_time', 'ZADD', kept, now, id)
      end
      if not keeps_outcomes(flags) then
        flags = flags + KEEPS_OUTCOMES
        repair('state')
      end
    elseif call('HEXISTS', items, id) == 0 then
      repair('dropped', 'ZREM', zset, id)
    elseif zset == ready and possible then
      raise_clock(time)
    elseif zset == ready then
      clock = next_token(clock, now)
      local new_score = ready_score(clock, priority_of(id))
      repair('bad_time', 'ZADD', ready, new_score, id)
    elseif zset ~= leased and not possible or zset == leased and score < 0 then
      repair('bad_time', 'ZADD', zset, now, id)
      due_now = due_now or zset ~= dead
    end
  end
end

if not stored and held > 0 and not repairs.state then
  repair('state')
end
-- Before the repairs, so that a dry run says the same; what they take away can only make the bound too early.
if next_due ~= next_due or next_due < 0 then
  next_due = NEVER
  repair('next_due')
end
local bound = next_due
next_due = read_next_due(delayed, leased)
next_due = math.min(next_due, bound, due_now and now or bound)
if next_due < bound and stored and not repairs.next_due then
  repair('next_due')
end
if not dry_run then
  allow_writes_when_full(ready)
  if repairs.dropped then
    increment_counter(counters, 'dropped', repairs.dropped)
  end
  for _, change in ipairs(changes) do
    call(unpack(change))
  end
  if next(repairs) then
    save_state(state, flags, clock, next_due, largest, added, leases, limits)
  end
  if no_wake_pending and (repairs.next_due or not is_paused(flags) and call('ZCARD', ready) > 0) then
    call('LPUSH', wake, '1')
  end
end
local following = page[1] ~= '0' and phase .. ':' .. page[1] or phase ~= '8' and phase + 1 .. ':0' or '0'
local reply = {following}
for _, kind in ipairs(kinds) do
  reply[#reply + 1] = kind
  reply[#reply + 1] = repairs[kind] or 0
end
return reply
