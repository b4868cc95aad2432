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
-- @arg entries integer 1..256
-- @arg entry* id, data, options (0..24), then options times (name, value)
-- @option delay integer 0..315360000000, ms from now
-- @option not_before integer 0..2840140799999, ms since 1970 on the server's clock; not together with delay
-- @option priority integer -7..7, higher first
-- @option max_attempts integer 0..65534, 0 is unlimited; without it, as the queue is configured
-- @option expires_in integer 1..315360000000, ms from now; gone then, unless it was leased
-- @option expires_to dead: it dies instead; with expires_in
-- @option keep integer 1..315360000000, ms for which its outcome is kept
-- @option content_type bytes
-- @option header:NAME bytes, at most 16; with the names and the content type at most 4096 bytes
-- @reply entry: created, us, or 0 when the id exists, or -1 when the queue is full
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_TOO_LARGE LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE LEASEQ_OUT_OF_MEMORY
-- @complexity O(log n) for each entry
local call = redis.call
local items, meta, ready, delayed, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local expiry, kept, state, wake = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
--#part clock
--#part read_state
if not blob and call('ZCARD', kept) > 0 then
  flags = 2
end
local asleep = call('LLEN', wake) == 0
local max_data, max_items = 1048576, 0
if limits ~= '\0\0\0\0\0\0\0\0\0\0' then
  max_data, max_items = struct.unpack('<I4I4', limits)
  max_data = max_data > 0 and max_data or 1048576
end
if ARGV[1] == '1' and ARGV[4] == '0' and #ARGV == 4 and flags == 0 and max_items == 0 then
  local id, data = ARGV[2], ARGV[3]
  --#part check_id
  local size = #data
  if size > max_data then
    error('LEASEQ_TOO_LARGE the data of an item is longer than this queue takes: ' .. max_data .. ' bytes', 0)
  end
  if call('HSETNX', items, id, data) == 0 then
    return 0
  end
  clock = clock + 1
  if now > clock then
    clock = now
  end
  -- a key of another type is found here and undone: cheaper than to look at it each time
  local placed = redis.pcall('ZADD', ready, clock - 1735689600000000, id)
  if type(placed) == 'table' then
    call('HDEL', items, id)
    error(placed.err, 0)
  end
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
--#part add_options
local entries, at = integer(ARGV[1], 1, 256, 'the number of entries'), 2
local first, options, plain = {}, {}, true
for i = 1, entries do
  first[i] = at
  at, options[i] = entry_options(at, max_data)
  plain = plain and not options[i]
end
--#part arity
call('HLEN', meta)
call('ZCARD', ready)
call('ZCARD', delayed)
if not plain or flags > 0 or max_items > 0 then
  call('ZCARD', dead)
  call('ZCARD', expiry)
  call('ZCARD', kept)
end
local queue = {
  items = items, meta = meta, ready = ready, delayed = delayed, dead = dead, expiry = expiry, kept = kept,
  flags = flags, clock = clock, next_due = next_due, largest = largest, added = added,
}
--#part add_entries
local answers = add_entries(queue, entries, first, options, max_items)
if queue.changed then
  flags, clock, next_due, largest, added = queue.flags, queue.clock, queue.next_due, queue.largest, queue.added
  --#part write_state
  if asleep and (queue.nearer or flags % 2 == 0 and call('ZCARD', ready) > 0) then
    call('LPUSH', wake, '1')
  end
end
return entries == 1 and answers[1] or answers
