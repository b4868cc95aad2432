--- Give leased items back, at once or after a delay; beyond max_attempts an item dies. Only with the current token.
-- @key meta HASH id -> record
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key state STRING packed
-- @key wake LIST
-- @key counters HASH name -> count
-- @key items HASH id -> data
-- @arg entries integer 1..256
-- @arg entry* id, token, options (0..2), then options times (name, value)
-- @option delay integer 0..315360000000, ms from now
-- @option uncounted 1: the attempt does not count and the item keeps its original place
-- @reply entry: ready, delayed, dead or lost
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local call = redis.call
local meta, ready, delayed, leased, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local state, wake, counters, items = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
--#part integer
--#part clock
local entries, at = integer(ARGV[1], 1, 256, 'the number of entries'), 2
local ids, tokens, delays, uncounted = {}, {}, {}, {}
for i = 1, entries do
  local id, token = ARGV[at] or '', ARGV[at + 1] or ''
  --#part check_id
  --#part check_token
  ids[i], tokens[i] = id, token
  local options = integer(ARGV[at + 2], 0, 2, 'the number of options')
  at = at + 3
  for _ = 1, options do
    local name, value = ARGV[at], ARGV[at + 1]
    if name == 'delay' and not delays[i] then
      delays[i] = integer(value, 0, 315360000000, 'delay')
      if now + delays[i] * 1000 >= 2840140800000000 then
        error('LEASEQ_BAD_ARGUMENT an item cannot become due after 2059', 0)
      end
    elseif name == 'uncounted' and value == '1' and not uncounted[i] then
      uncounted[i] = true
    else
      error('LEASEQ_BAD_ARGUMENT release takes delay and uncounted (1), once each', 0)
    end
    at = at + 2
  end
end
--#part arity
--#part read_state
local asleep = call('LLEN', wake) == 0
call('ZCARD', ready)
call('ZCARD', delayed)
call('ZCARD', dead)
call('HLEN', counters)
local records, soonest, died = call('HMGET', meta, unpack(ids)), next_due, 0
local answers, gone, seen, changes = {}, {}, {}, {}
for i = 1, entries do
  local id, record = ids[i], records[i]
  answers[i] = 'lost'
  if record then
    --#part unpack_record
    if tokens[i] == current and not seen[id] and call('ZSCORE', leased, id) then
      seen[id] = true
      gone[#gone + 1] = id
      local priority, max_attempts = 0, 0
      if options == 1 then
        priority, max_attempts = struct.unpack('<bI2', string.sub(record, 23))
      end
      local delay = delays[i] or 0
      if uncounted[i] then
        local fresh = struct.pack('<BBI4dd', 1, options, math.max(0, attempt - 1), current, created) .. string.sub(record, 23)
        changes[#changes + 1] = {'HSET', meta, id, fresh}
      end
      if not uncounted[i] and max_attempts > 0 and attempt >= max_attempts then
        answers[i] = 'dead'
        died = died + 1
        changes[#changes + 1] = {'ZADD', dead, now, id}
      elseif delay > 0 then
        answers[i] = 'delayed'
        soonest = math.min(soonest, now + delay * 1000)
        changes[#changes + 1] = {'ZADD', delayed, now + delay * 1000, id}
      else
        answers[i] = 'ready'
        clock = math.max(clock + 1, now)
        local place = (uncounted[i] and created or clock) - 1735689600000000
        changes[#changes + 1] = {'ZADD', ready, place - priority * 1125899906842624, id}
      end
    end
  end
end
if #gone > 0 then
  -- a no-op that the server allows when out of memory; then the counters, which damage may have made no numbers
  call('ZREM', leased, '')
  call('HINCRBY', counters, 'released', #gone)
  if died > 0 then
    call('HINCRBY', counters, 'died', died)
  end
  call('ZREM', leased, unpack(gone))
  for _, change in ipairs(changes) do
    call(unpack(change))
  end
  local nearer = soonest < next_due or next_due == 0
  next_due = soonest
  --#part write_state
  if asleep and (nearer or call('ZCARD', ready) > 0) then
    call('LPUSH', wake, '1')
  end
end
return entries == 1 and answers[1] or answers
