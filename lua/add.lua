--- Add items. An id that exists is left as it is. Entries act as if called one after the other.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key dead ZSET id -> time of death, us
-- @key expiry ZSET id -> time at which it goes if it was never leased, us
-- @key kept ZSET id -> end of its outcome, us
-- @key state STRING packed
-- @key wake LIST
-- @arg entries count 1..256
-- @entry id id
-- @entry data bytes
-- @entry options options
-- @option delay ms 0..315360000000 = 0, from now until it is due (LQ-ADD-3)
-- @option not_before time_ms 0..2840140799999, when it is due, by the server's clock; not together with delay (LQ-ADD-3)
-- @option priority integer -7..7 = 0, higher first (LQ-ORDER-1)
-- @option max_attempts integer 0..65534, how often it may be leased before it is dead; 0 is unlimited; by default as the queue is configured
-- @option expires_in ms 1..315360000000, from now until it is dropped, unless it was leased before (LQ-LEASE-10)
-- @option expires_to word dead, with expires_in: it becomes dead then, and is not dropped
-- @option keep kept_ms 1..315360000000, how long its outcome is kept; by default it is not kept (LQ-OUTCOME-1)
-- @option content_type bytes, returned with each lease, as headers are (LQ-ITEM-5)
-- @option header:NAME bytes, at most 16; with the content type at most 4096 bytes, names included (LQ-ITEM-6)
-- @reply entries each
-- @reply* created time_us, 0 when the id exists; -1 when the queue is full
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_TOO_LARGE LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE LEASEQ_OUT_OF_MEMORY
-- @complexity O(log n) for each entry
local items, meta, ready, delayed, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local expiry, kept, state, wake = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local now = server_time()
local stored, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
if not stored and call('ZCARD', kept) > 0 then
  flags = KEEPS_OUTCOMES
end
local no_wake_pending = call('LLEN', wake) == 0
local max_data, max_items = DEFAULT_MAX_DATA, 0
if limits ~= NO_LIMITS then
  max_data, max_items = struct.unpack('<I4I4', limits)
  max_data = max_data > 0 and max_data or DEFAULT_MAX_DATA
end
local id, data, options = ARGV[2], ARGV[3], nil
if ARGV[1] == '1' and ARGV[4] == '0' and #ARGV == 4 then
  -- The hot path: one entry without options.
  check_id(id)
  if #data > max_data then
    error('LEASEQ_TOO_LARGE the data of an item is longer than this queue takes: ' .. max_data .. ' bytes', 0)
  end
else
  --#functions
  local entries, at = ARGV[1], 2
  if entries ~= '1' then
    entries = parse_integer(entries, 1, MAX_ENTRIES, 'the number of entries')
    if entries > 1 then
      --#functions
      local queue = {
        items = items, meta = meta, ready = ready, delayed = delayed, dead = dead, expiry = expiry, kept = kept,
        state = state, wake = wake, no_wake_pending = no_wake_pending,
        flags = flags, clock = clock, next_due = next_due, largest = largest, added = added, leases = leases,
        limits = limits,
      }
      local answers = add_batch(queue, now, ARGV, entries, max_data, max_items)
      if queue.changed then
        finish_add(queue)
      end
      return answers
    end
  end
  check_entry(ARGV, at, max_data)
  at, options = parse_options(ARGV, at + 2, now)
  check_argument_count(ARGV, at)
end
-- One entry, and no command that it does not need.
local due, bits, priority, max_attempts, expires, keep, extra = nil, 0, 0, 0, 0, 0, nil
if options then
  due, bits, priority, max_attempts = options.due, options.bits, options.priority, options.max_attempts
  expires, keep, extra = options.expires, options.keep, options.extra
end
local others = 0
if due and no_wake_pending then
  others = call('ZCARD', ready)
end
if max_items > 0 and call('HLEN', items) - call('ZCARD', dead) >= max_items then
  return call('HEXISTS', items, id) - 1
end
if call('HSETNX', items, id, data) == 0 then
  return 0
end
clock = next_token(clock, now)
local record = new_item_record(clock, due, bits, priority, max_attempts, expires, keep)
-- These keys are not looked at before: what one of another type stops is undone, which is cheaper than a look each time.
local result
if due then
  result = redis.pcall('ZADD', delayed, due, id)
else
  local score = ready_score(clock, priority)
  result = redis.pcall('ZADD', ready, score, id)
end
if record and type(result) ~= 'table' then
  if extra then
    result = redis.pcall('HSET', meta, id, record, '\0' .. id, extra)
  else
    result = redis.pcall('HSET', meta, id, record)
  end
end
if expires > 0 and type(result) ~= 'table' then
  result = redis.pcall('ZADD', expiry, expires, id)
end
if keeps_outcomes(flags) and type(result) ~= 'table' then
  -- the outcome of an earlier item of this id
  result = redis.pcall('ZREM', kept, id)
elseif keep > 0 then
  flags = flags + KEEPS_OUTCOMES
end
if type(result) == 'table' then
  call('HDEL', items, id)
  redis.pcall('ZREM', due and delayed or ready, id)
  redis.pcall('HDEL', meta, id, '\0' .. id)
  redis.pcall('ZREM', expiry, id)
  error(result.err, 0)
end
local due_sooner = next_due == 0
if due and due < next_due then
  next_due, due_sooner = due, true
end
if #data > largest then
  largest = #data
end
added = added + 1
save_state(state, flags, clock, next_due, largest, added, leases, limits)
if no_wake_pending and (due_sooner or not is_paused(flags) and (not due or others > 0)) then
  call('LPUSH', wake, '1')
end
return clock
