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
local items, meta, ready, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local leased, dead, kept, state = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local more = {unpack(KEYS, 9)}
local now = server_time()
local tag = string.match(items, '^[^{]*({[^}]*})')
for _, key in ipairs(more) do
  if string.match(key, '^[^{]*({[^}]*})') ~= tag then
    error(
      'LEASEQ_CROSS_GROUP follow-up items go to queues of the same group: create both queues with the same group name',
      0
    )
  end
end
local entries = parse_integer(ARGV[1], 1, MAX_ENTRIES, 'the number of entries')
local targets = parse_integer(ARGV[2], 0, MAX_TARGETS, 'the number of targets')

--#part handoff_targets
--#part handoff_entries
check_argument_count(ARGV, at)
if #more ~= 9 * targets + keeping then
  error('LEASEQ_BAD_ARGUMENT complete_with takes one key result:<id> for each entry with the option keep', 0)
end
call('HLEN', items)
for _, zset in ipairs({ready, delayed, leased, dead, kept}) do
  call('ZCARD', zset)
end
for i, record in ipairs(call('HMGET', meta, unpack(ids))) do
  local option = given[i]
  if record then
    local options, attempt, latest_token, created = decode_record(record)
  end
  option.record = record
  if option.keep then
    option.older = call('LLEN', option.result) > 0
  end
  if option.older then
    -- may be a repetition: an outcome that cannot be read is refused before anything is written
    local is_kept = call('ZSCORE', kept, option.id)
    local _, _, _, _, _, _ = load_outcome(option.result, is_kept)
  end
end

--#part add_entries
--#part handoff_ends
local reply = {}
-- a no-op that the server allows when out of memory
allow_writes_when_full(leased)
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
    save_state(state, flags, clock, next_due, largest, added, leases, limits)
    if queue.changed and queue.asleep and (queue.nearer or flags % 2 == 0 and call('ZCARD', queue.ready) > 0) then
      call('LPUSH', queue.wake, '1')
    end
  end
end
return reply
