--- Promote due items, requeue expired leases, end items and outcomes whose time is over, at most limit of each. Idempotent.
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
-- @key room LIST
-- @key counters HASH name -> count
-- @arg limit integer 1..256
-- @reply promoted integer
-- @reply reclaimed integer
-- @reply died integer
-- @reply expired integer
-- @reply pruned integer
-- @reply wait us, until something is due; 0 when more is left; -1 when nothing will be
-- @reply dead_with_outcome rest, ids of items that died and keep an outcome; read their outcomes (LQ-CLIENT-8)
-- @reply* id id
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each item that is moved
local items, meta, ready, delayed, leased, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local expiry, kept, state, wake, room, counters = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local limit = parse_integer(ARGV[1], 1, MAX_ENTRIES, 'limit')
check_argument_count(ARGV, 2)
local now = server_time()
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local no_wake_pending = call('LLEN', wake) == 0
local max_items, signal_producer = needs_room_signal(limits, room, items, dead)
local queue = {
  items = items, meta = meta, ready = ready, delayed = delayed, leased = leased, dead = dead,
  expiry = expiry, state = state, counters = counters,
  flags = flags, clock = clock, next_due = next_due, largest = largest, added = added, leases = leases,
  limits = limits,
}
local expired_ids = call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', '0', limit)
local ended_outcomes = call('ZRANGEBYSCORE', kept, '-inf', now, 'LIMIT', '0', limit)
local expired, expired_to_dead = plan_expiry(queue, now, expired_ids)
local plan = plan_reclaim(queue, now, limit)
-- A key of another type fails here, before the first write.
call('ZCARD', kept)
local reclaimed = reclaim(queue, plan)
local promoted, died, dead_with_outcome = #plan.due, #plan.deaths / 2, plan.dead_with_outcome
local changed = promoted + #plan.expired_leases + #expired_ids > 0
if changed or #ended_outcomes > 0 or queue.next_due ~= next_due then
  allow_writes_when_full(ready)
end
expire(queue, now, expired, expired_to_dead, dead_with_outcome)
for _, ids in ipairs({expired, expired_to_dead}) do
  if #ids > 0 then
    call('ZREM', ready, unpack(ids))
    call('ZREM', delayed, unpack(ids))
  end
end
if #expired_ids > 0 then
  call('ZREM', expiry, unpack(expired_ids))
end
if #ended_outcomes > 0 then
  call('ZREM', kept, unpack(ended_outcomes))
end
if changed or queue.next_due ~= next_due then
  save_queue(queue)
  if no_wake_pending and not is_paused(flags) and call('ZCARD', ready) > 0 then
    call('LPUSH', wake, '1')
  end
end
signal_room(signal_producer, max_items, items, dead, ready, room)
local first = queue.next_due
for _, index in ipairs({expiry, kept}) do
  first = math.min(first, tonumber(call('ZRANGE', index, '0', '0', 'WITHSCORES')[2] or first))
end
local wait = first < NEVER and math.max(0, first - now) or -1
return {promoted, reclaimed, died + #expired_to_dead, #expired, #ended_outcomes, wait, unpack(dead_with_outcome)}
