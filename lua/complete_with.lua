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
-- @arg entries count 1..256
-- @arg targets count 0..16, each brings its keys
-- @entry id id
-- @entry token token
-- @entry options options
-- @entry follow_ups count 0..256, at most 256 in the call
-- @follow_up target integer 1..16, the number of its queue
-- @follow_up entry add
-- @option only_current flag, complete it only while this lease is the current one (LQ-COMPLETE-4)
-- @option keep kept_ms 0..315360000000, how long the result is kept; 0: as the item was added, and not at all if it was added without keep
-- @option result bytes, at most as long as data may be (LQ-OUTCOME-7); dropped if nothing is kept
-- @reply entries entries
-- @reply* completed boolean
-- @reply* follow_ups follow_ups
-- @reply** created time_us, 0 when the id exists; -1 when this call did not complete the entry
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_TOO_LARGE LEASEQ_CLOCK LEASEQ_CROSS_GROUP LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry and each follow-up
local items, meta, ready, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local leased, dead, kept, state = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local other_keys = {unpack(KEYS, 9)}
local now = server_time()
local tag = string.match(items, '^[^{]*({[^}]*})')
for _, key in ipairs(other_keys) do
  if string.match(key, '^[^{]*({[^}]*})') ~= tag then
    error(
      'LEASEQ_CROSS_GROUP follow-up items go to queues of the same group: create both queues with the same group name',
      0
    )
  end
end
local entries = parse_integer(ARGV[1], 1, MAX_ENTRIES, 'the number of entries')
local targets = parse_integer(ARGV[2], 0, MAX_TARGETS, 'the number of targets')
local queues = {}
local source = open_queue(queues, {state = state, items = items, kept = kept})
local target_queues = open_target_queues(queues, targets, other_keys)
local result_keys = {unpack(other_keys, KEYS_PER_TARGET * targets + 1)}
local handoffs, keeping = parse_handoffs(ARGV, entries, now, source.max_data, target_queues, result_keys)
if #other_keys ~= KEYS_PER_TARGET * targets + keeping then
  error('LEASEQ_BAD_ARGUMENT complete_with takes one key result:<id> for each entry with the option keep', 0)
end
-- A key of another type fails here, before the first write.
call('HLEN', items)
for _, zset in ipairs({ready, delayed, leased, dead, kept}) do
  -- A key of another type fails here, before the first write.
  call('ZCARD', zset)
end
local ids = {}
for i, entry in ipairs(handoffs) do
  ids[i] = entry.id
end
-- What cannot be read is refused before anything is written.
for i, record in ipairs(call('HMGET', meta, unpack(ids))) do
  local entry = handoffs[i]
  if record then
    local _, _, _, _ = decode_record(record)
  end
  entry.record = record
  entry.has_result = entry.keep and call('LLEN', entry.result_key) > 0
  if entry.has_result then
    -- may be a repetition
    local is_kept = call('ZSCORE', kept, entry.id)
    local _, _, _, _, _, _ = load_outcome(entry.result_key, is_kept)
  end
end
local source_keys = {
  items = items, meta = meta, ready = ready, delayed = delayed, leased = leased, dead = dead, kept = kept,
}
local reply, completed = {}, {}
allow_writes_when_full(leased)
for _, entry in ipairs(handoffs) do
  local is_completed = complete_entry(source_keys, source, now, entry, completed)
  reply[#reply + 1] = (is_completed or was_completed_by(kept, entry)) and 1 or 0
  for _, follow_up in ipairs(entry.follow_ups) do
    local answer = -1
    if is_completed then
      answer = insert_entries(follow_up.queue, now, ARGV, {follow_up.place}, {follow_up.options}, 0)[1]
    end
    reply[#reply + 1] = answer
  end
end
for _, queue in ipairs(queues) do
  if queue.changed or queue.flags ~= queue.flags_read then
    finish_add(queue)
  end
end
return reply
