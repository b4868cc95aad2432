--- Add items. An id that exists is left as it is. Entries act as if called one after the other.
-- @key items HASH id -> data
-- @key meta HASH id -> record
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key state STRING packed
-- @key wake LIST
-- @arg entries integer 1..256
-- @arg entry* id, data, options (0..4), then options times (name, value)
-- @option delay integer 0..315360000000, ms from now
-- @option not_before integer 0..2840140799999, ms since 1970 on the server's clock; not together with delay
-- @option priority integer -7..7, higher first
-- @option max_attempts integer 0..65535, 0 is unlimited
-- @reply entry: created, us, or 0 when the id exists
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_TOO_LARGE LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE LEASEQ_OUT_OF_MEMORY
-- @complexity O(log n) for each entry
local call = redis.call
local items, meta, ready, delayed, state, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
--#part clock
--#part read_state
local asleep = call('LLEN', wake) == 0
local max_data = limits == '\0\0\0\0\0\0\0\0\0\0' and 0 or struct.unpack('<I4', limits)
if max_data == 0 then
  max_data = 1048576
end
if ARGV[1] == '1' and ARGV[4] == '0' and #ARGV == 4 then
  local id, data = ARGV[2], ARGV[3]
  --#part check_id
  local size = #data
  if size > max_data then
    error('LEASEQ_TOO_LARGE the data of an item is longer than this queue takes: ' .. max_data .. ' bytes', 0)
  end
  call('ZCARD', ready)
  if call('HSETNX', items, id, data) == 0 then
    return 0
  end
  clock = clock + 1
  if now > clock then
    clock = now
  end
  call('ZADD', ready, clock - 1735689600000000, id)
  if size > largest then
    largest = size
  end
  added = added + 1
  --#part write_state
  if asleep then
    call('LPUSH', wake, '1')
  end
  return clock
end
--#part integer
local entries, at = integer(ARGV[1], 1, 256, 'the number of entries'), 2
local first, due, priorities, tries = {}, {}, {}, {}
for i = 1, entries do
  local id, data, options = ARGV[at] or '', ARGV[at + 1] or '', ARGV[at + 2]
  --#part check_id
  if #data > max_data then
    error('LEASEQ_TOO_LARGE the data of an item is longer than this queue takes: ' .. max_data .. ' bytes', 0)
  end
  first[i] = at
  at = at + 3
  if options ~= '0' then
    for _ = 1, integer(options, 0, 4, 'the number of options') do
      local name, value = ARGV[at], ARGV[at + 1]
      if name == 'delay' and not due[i] then
        due[i] = now + integer(value, 0, 315360000000, 'delay') * 1000
      elseif name == 'not_before' and not due[i] then
        due[i] = integer(value, 0, 2840140799999, 'not_before') * 1000
      elseif name == 'priority' and not priorities[i] and string.find(value or '', '^-?[0-7]$') then
        priorities[i] = tonumber(value)
      elseif name == 'max_attempts' and not tries[i] then
        tries[i] = integer(value, 0, 65535, 'max_attempts')
      else
        error('LEASEQ_BAD_ARGUMENT add takes delay or not_before, priority (-7..7) and max_attempts, once each', 0)
      end
      at = at + 2
    end
    if due[i] and due[i] >= 2840140800000000 then
      error('LEASEQ_BAD_ARGUMENT an item cannot become due after 2059', 0)
    end
  end
end
--#part arity
call('HLEN', meta)
call('ZCARD', ready)
call('ZCARD', delayed)
local created, places, records, dues, soonest = {}, {}, {}, {}, next_due
for i = 1, entries do
  local id, data = ARGV[first[i]], ARGV[first[i] + 1]
  created[i] = 0
  if call('HSETNX', items, id, data) == 1 then
    clock = clock + 1
    if now > clock then
      clock = now
    end
    created[i] = clock
    added = added + 1
    if #data > largest then
      largest = #data
    end
    local priority, max_attempts = priorities[i] or 0, tries[i] or 0
    local waits = due[i] and due[i] > now
    if waits then
      dues[#dues + 1] = due[i]
      dues[#dues + 1] = id
      soonest = math.min(soonest, due[i])
    else
      places[#places + 1] = clock - 1735689600000000 - priority * 1125899906842624
      places[#places + 1] = id
    end
    if waits or priority ~= 0 or max_attempts ~= 0 then
      local options = (priority ~= 0 or max_attempts ~= 0) and 1 or 0
      local record = struct.pack('<BBI4dd', 1, options, 0, 0, clock)
      if options == 1 then
        record = record .. struct.pack('<bI2', priority, max_attempts)
      end
      records[#records + 1] = id
      records[#records + 1] = record
    end
  end
end
if #places > 0 then
  call('ZADD', ready, unpack(places))
end
if #dues > 0 then
  call('ZADD', delayed, unpack(dues))
end
if #records > 0 then
  call('HSET', meta, unpack(records))
end
if #places > 0 or #dues > 0 then
  local nearer = soonest < next_due or next_due == 0
  next_due = soonest
  --#part write_state
  if asleep and (nearer or call('ZCARD', ready) > 0) then
    call('LPUSH', wake, '1')
  end
end
return entries == 1 and created[1] or created
