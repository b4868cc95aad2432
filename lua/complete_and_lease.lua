--- Complete items, then lease, as if the two were called one after the other, in one round trip.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key expiry ZSET id -> time at which it goes if it was never leased, us
-- @key state STRING packed
-- @key wake LIST
-- @key room LIST
-- @key counters HASH name -> count
-- @arg count integer 1..256
-- @arg duration ms 1..2592000000
-- @arg entries count 1..256
-- @entry id id
-- @entry token token
-- @entry options options
-- @option only_current flag, complete it only while this lease is the current one (LQ-COMPLETE-4)
-- @reply leased lease
-- @reply entries entries, the last elements
-- @reply* completed boolean
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry and for each item leased, promoted or reclaimed
local items, meta, ready, delayed, leased, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local expiry, state, wake, room, counters = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local count, duration = parse_lease_arguments(ARGV[1], ARGV[2])
local now = server_time()
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local no_wake_pending = call('LLEN', wake) == 0
local max_items, signal_producer = needs_room_signal(limits, room, items, dead)
if count == 1 and ARGV[3] == '1' and ARGV[6] == '0' and #ARGV == 6 and now < next_due and not is_paused(flags) then
  -- The hot path: the same as below for one item that this call completes and one to lease that is another.
  local finished, finished_options
  do
    local id = ARGV[4]
    local token = parse_token(ARGV[5])
    local record = string.byte(id) ~= 0 and call('HGET', meta, id)
    if record then
      local options, _, latest_token, created = decode_record(record)
      if token > created and token <= latest_token then
        finished, finished_options = id, options
      end
    end
  end
  local head = finished and call('ZRANGE', ready, '0', '0', 'WITHSCORES') or {}
  local id = head[1]
  local data = id and id ~= finished and call('HGET', items, id)
  if data then
    local token, attempts, new_record = lease_one(meta, id, head[2], clock, now)
    if new_record then
      leave_state(leased, ready, delayed, dead, finished)
      delete_item(items, meta, finished, finished_options)
      local deadline = now + duration * 1000
      call('ZREM', ready, id)
      call('ZADD', leased, deadline, id)
      call('HSET', meta, id, new_record)
      next_due = save_one_lease(state, flags, token, next_due, largest, added, leases, limits, deadline)
      wake_after_lease(ready, wake, no_wake_pending, next_due, now)
      signal_room(signal_producer, max_items, items, dead, ready, room)
      return {0, deadline, 1, id, data, token, attempts, 1}
    end
  end
end
--#functions
call('HLEN', counters)
call('ZCARD', expiry)
local queue = {
  items = items, meta = meta, ready = ready, delayed = delayed, leased = leased, dead = dead,
  expiry = expiry, state = state, wake = wake, room = room, counters = counters,
  flags = flags, clock = clock, next_due = next_due, largest = largest, added = added, leases = leases,
  limits = limits, next_due_read = next_due, max_items = max_items,
  no_wake_pending = no_wake_pending, signal_producer = signal_producer,
}
local ids, tokens, only_current = parse_completions(ARGV, 3)
local answers, completed, extras = plan_completions(queue, ids, tokens, only_current)
local entries, moved, not_leased, dead_with_outcome = #ids, false, false, {}
local ready_ids, scored, records = peek_ready(queue, count)
if check_records(records) then
  -- what this call completes may be among them: then others come to the front
  ready_ids, scored, records = peek_ready(queue, count + entries)
  check_records(records)
end
if now >= next_due then
  -- Planned twice: before anything is written, so that bad records are refused, and again without the completed
  -- items: each of them makes room for one more.
  plan_reclaim(queue, now, RECLAIM_LIMIT + entries)
  queue.clock = clock
  not_leased = write_completions(queue, ids, answers, completed, extras)
  local plan = plan_reclaim(queue, now, RECLAIM_LIMIT)
  reclaim(queue, plan)
  dead_with_outcome, moved = plan.dead_with_outcome, #plan.due + #plan.expired_leases > 0
else
  not_leased = write_completions(queue, ids, answers, completed, extras)
end
if moved or not_leased then
  ready_ids, scored, records = peek_ready(queue, count)
end
local reply, leased_some = lease_batch(queue, now, count, duration, ready_ids, scored, records, dead_with_outcome)
finish_lease(queue, now, reply, moved or leased_some, dead_with_outcome)
for i = 1, entries do
  reply[#reply + 1] = answers[i]
end
return reply
