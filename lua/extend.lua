--- Move the deadline of current leases, also of expired leases that no call has reclaimed: heartbeat and cancel signal.
-- @key meta HASH id -> record
-- @key leased ZSET id -> deadline, us
-- @key state STRING packed
-- @key wake LIST
-- @key items HASH id -> data
-- @arg entries count 1..256
-- @entry id id
-- @entry token token
-- @entry duration ms 1..2592000000, from now
-- @reply entries each
-- @reply* deadline time_us, 0 when the lease is lost
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local meta, leased, state, wake, items = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local entries, at = parse_integer(ARGV[1], 1, MAX_ENTRIES, 'the number of entries'), 2
local ids, tokens, durations = {}, {}, {}
for i = 1, entries do
  local id, token_text = ARGV[at] or '', ARGV[at + 1] or ''
  check_id(id)
  local token = parse_token(token_text)
  ids[i], tokens[i] = id, token
  durations[i] = parse_integer(ARGV[at + 2], 1, MAX_LEASE_MS, 'duration, in milliseconds,')
  at = at + 3
end
check_argument_count(ARGV, at)
local now = server_time()
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local no_wake_pending = call('LLEN', wake) == 0
local records = call('HMGET', meta, unpack(ids))
local answers, moves, soonest = {}, {}, next_due
for i = 1, entries do
  local record = records[i]
  answers[i] = 0
  if record then
    local options, attempt, latest_token, created = decode_record(record)
    if tokens[i] == latest_token and call('ZSCORE', leased, ids[i]) then
      answers[i] = now + durations[i] * 1000
      soonest = math.min(soonest, answers[i])
      moves[#moves + 1] = answers[i]
      moves[#moves + 1] = ids[i]
    end
  end
end
if #moves > 0 then
  -- heartbeats live on a full server
  allow_writes_when_full(leased)
  call('ZADD', leased, unpack(moves))
  if soonest < next_due or next_due == 0 then
    next_due = soonest
    save_state(state, flags, clock, next_due, largest, added, leases, limits)
    if no_wake_pending then
      call('LPUSH', wake, '1')
    end
  end
end
return entries == 1 and answers[1] or answers
