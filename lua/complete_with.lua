--- Complete items, keep their results and add follow-up items, in one step. Entries act as if called one after the other.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key kept ZSET id -> end of its outcome, us
-- @key state STRING packed
-- @keys each target queue: items meta ready delayed dead expiry kept state wake
-- @keys each entry with keep: result:<id>
-- @arg entries integer 1..256
-- @arg targets integer 0..16
-- @arg entry* id, token, options (0..3), then options times (name, value), then follow_ups (0..256, at most 256 in the call), then follow_ups times (target, 1..targets, and an entry of add)
-- @option only_current 1: only while this lease is the current one
-- @option keep integer 0..315360000000, ms for which the result is kept; 0: as the item was added with
-- @option result bytes, with keep
-- @reply for each entry 1 or 0, then for each of its follow-ups created, us, or 0 when the id exists, or -1 when this call did not complete the entry
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_TOO_LARGE LEASEQ_CLOCK LEASEQ_CROSS_GROUP LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry and each follow-up
local call = redis.call
local items, meta, ready, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local leased, dead, kept, state = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local more = {unpack(KEYS, 9)}
--#part integer
--#part clock
local tag = string.match(items, '^[^{]*({[^}]*})')
for _, key in ipairs(more) do
  if string.match(key, '^[^{]*({[^}]*})') ~= tag then
    error(
      'LEASEQ_CROSS_GROUP follow-up items go to queues of the same group: create both queues with the same group name',
      0
    )
  end
end
local entries = integer(ARGV[1], 1, 256, 'the number of entries')
local targets = integer(ARGV[2], 0, 16, 'the number of targets')

-- one queue may be the source and a target, or a target twice: its state is read once and written once
local queues, opened = {}, {}
local function open(keys)
  local queue = opened[keys.state]
  if not queue then
    local state, items = keys.state, keys.items
    --#part read_state
    queue = keys
    queue.flags, queue.clock, queue.next_due, queue.largest, queue.added = flags, clock, next_due, largest, added
    queue.leases, queue.limits, queue.flags_read = leases, limits, flags
    queue.max_data = struct.unpack('<I4', limits)
    queue.max_data = queue.max_data > 0 and queue.max_data or 1048576
    opened[keys.state] = queue
    queues[#queues + 1] = queue
  end
  return queue
end
local source, target_of = open({state = state, items = items}), {}
for number = 1, targets do
  local k = 9 * number - 8
  local keys = {
    items = more[k], meta = more[k + 1], ready = more[k + 2], delayed = more[k + 3], dead = more[k + 4],
    expiry = more[k + 5], kept = more[k + 6], state = more[k + 7], wake = more[k + 8],
  }
  if not keys.wake then
    error('LEASEQ_BAD_ARGUMENT complete_with takes nine keys for each target', 0)
  end
  local queue = open(keys)
  for name, key in pairs(keys) do
    queue[name] = key
  end
  queue.asleep = call('LLEN', queue.wake) == 0
  call('HLEN', queue.meta)
  for _, zset in ipairs({queue.ready, queue.delayed, queue.dead, queue.expiry, queue.kept}) do
    call('ZCARD', zset)
  end
  target_of[number] = queue
end

--#part add_options
local given, at, keeping, follow_ups = {}, 3, 0, 0
for i = 1, entries do
  local id, token, option = ARGV[at] or '', ARGV[at + 1] or '', {follow = {}}
  --#part check_id
  --#part check_token
  option.id, option.token = id, token
  local count = integer(ARGV[at + 2], 0, 3, 'the number of options')
  at = at + 3
  for _ = 1, count do
    local name, value = ARGV[at], ARGV[at + 1]
    if name == 'only_current' and value == '1' and not option.only_current then
      option.only_current = true
    elseif name == 'keep' and not option.keep then
      option.keep = integer(value, 0, 315360000000, 'keep')
      keeping = keeping + 1
      option.result = more[9 * targets + keeping]
    elseif name == 'result' and value and not option.content then
      option.content = value
    else
      error('LEASEQ_BAD_ARGUMENT complete_with takes only_current (1), keep and result, once each', 0)
    end
    at = at + 2
  end
  if option.content and not option.keep then
    error('LEASEQ_BAD_ARGUMENT a result needs the option keep', 0)
  elseif option.content and #option.content > source.max_data then
    error('LEASEQ_TOO_LARGE the result is longer than the data of an item of this queue: ' .. source.max_data .. ' bytes', 0)
  end
  local following = integer(ARGV[at], 0, 256, 'the number of follow-up items')
  follow_ups, at = follow_ups + following, at + 1
  if follow_ups > 256 then
    error('LEASEQ_BAD_ARGUMENT one call takes 256 follow-up items', 0)
  end
  for f = 1, following do
    local queue = target_of[integer(ARGV[at], 1, math.max(1, targets), 'target')]
    if not queue then
      error('LEASEQ_BAD_ARGUMENT a follow-up item needs a target', 0)
    end
    local first = at + 1
    local behind, options = entry_options(first, queue.max_data)
    option.follow[f] = {queue = queue, first = first, options = options}
    at = behind
  end
  given[i] = option
end
--#part arity
if #more ~= 9 * targets + keeping then
  error('LEASEQ_BAD_ARGUMENT complete_with takes one key result:<id> for each entry with the option keep', 0)
end
call('HLEN', items)
for _, zset in ipairs({ready, delayed, leased, dead, kept}) do
  call('ZCARD', zset)
end
for i = 9 * targets + 1, #more do
  call('LLEN', more[i])
end
for _, option in ipairs(given) do
  local record, wins = call('HGET', meta, option.id), false
  if record then
    --#part unpack_record
    wins = option.token > created and option.token <= current
  end
  if option.keep and not wins then
    -- may be a repetition: an outcome that cannot be read is refused before anything is written
    local result, counts = option.result, call('ZSCORE', kept, option.id)
    --#part read_outcome
  end
end

--#part add_entries
local function keep_result(option, attempt, created, ttl)
  local id, token, content, kind, ended, flags = option.id, option.token, option.content or '', 1, now, source.flags
  local change = call
  --#part keep_outcome
  source.flags = flags
end
local function won(option)
  local id, token, record = option.id, option.token, call('HGET', meta, option.id)
  if record then
    --#part unpack_record
    if
      token > created
      and token <= current
      and (not option.only_current or token == current and call('ZSCORE', leased, id))
    then
      --#part unpack_tail
      if call('ZREM', leased, id) == 0 and call('ZREM', ready, id) == 0 and call('ZREM', delayed, id) == 0 then
        call('ZREM', dead, id)
      end
      call('HDEL', items, id)
      if options % 4 >= 2 then
        call('HDEL', meta, id, '\0' .. id)
      else
        call('HDEL', meta, id)
      end
      local ttl = option.keep and (option.keep > 0 and option.keep or keep) or 0
      if ttl > 0 then
        keep_result(option, attempt, created, ttl)
      end
      return true
    end
  end
  return false
end
-- The lease that completed the item says so once more: its reply was lost.
local function repeated(option)
  if not option.keep then
    return false
  end
  local result, counts = option.result, call('ZSCORE', kept, option.id)
  --#part read_outcome
  return found and kind == 1 and token == option.token
end
local reply = {}
-- a no-op that the server allows when out of memory
call('ZREM', leased, '')
for _, option in ipairs(given) do
  local completed = won(option)
  reply[#reply + 1] = (completed or repeated(option)) and 1 or 0
  for _, follow in ipairs(option.follow) do
    reply[#reply + 1] = completed and add_entries(follow.queue, 1, {follow.first}, {follow.options}, 0)[1] or -1
  end
end
for _, queue in ipairs(queues) do
  if queue.changed or queue.flags ~= queue.flags_read then
    local state, flags, clock, next_due = queue.state, queue.flags, queue.clock, queue.next_due
    local largest, added, leases, limits = queue.largest, queue.added, queue.leases, queue.limits
    --#part write_state
    if queue.changed and queue.asleep and (queue.nearer or flags % 2 == 0 and call('ZCARD', queue.ready) > 0) then
      call('LPUSH', queue.wake, '1')
    end
  end
end
return reply
