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
-- @reply promoted, reclaimed, died, expired, pruned, wait: us until something is due, 0 when more is left, -1 when nothing will be; then ids that died and keep an outcome
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each item that is moved
local items, meta, ready, delayed, leased, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local expiry, kept, state, wake, room, counters = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local sweep_limit, at = parse_integer(ARGV[1], 1, MAX_ENTRIES, 'limit'), 2
check_argument_count(ARGV, at)
local now = server_time()
local stored, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local bound_read, asleep, died_kept = next_due, call('LLEN', wake) == 0, {}
local max_items, tell_room = needs_room_signal(limits, room, items, dead)
local over = call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', '0', sweep_limit)
local ended = call('ZRANGEBYSCORE', kept, '-inf', now, 'LIMIT', '0', sweep_limit)
--#part expire_plan
--#part sweep_plan
plan_sweep()
call('ZCARD', kept)
--#part sweep
local changed = #due + #late + #over > 0
if changed or #ended > 0 or next_due ~= bound_read then
  -- a no-op that the server allows when out of memory, where nothing was due
  allow_writes_when_full(ready)
end
--#part expire
for _, gone in ipairs({expired, lapsed}) do
  if #gone > 0 then
    call('ZREM', ready, unpack(gone))
    call('ZREM', delayed, unpack(gone))
  end
end
if #over > 0 then
  call('ZREM', expiry, unpack(over))
end
if #ended > 0 then
  call('ZREM', kept, unpack(ended))
end
if changed or next_due ~= bound_read then
  save_state(state, flags, clock, next_due, largest, added, leases, limits)
  if asleep and flags % 2 == 0 and call('ZCARD', ready) > 0 then
    call('LPUSH', wake, '1')
  end
end
signal_room(tell_room, max_items, items, dead, ready, room)
local first = next_due
for _, index in ipairs({expiry, kept}) do
  first = math.min(first, tonumber(call('ZRANGE', index, '0', '0', 'WITHSCORES')[2] or first))
end
local wait = first < NEVER and math.max(0, first - now) or -1
return {#due, reclaimed, #deaths / 2 + #lapsed, #expired, #ended, wait, unpack(died_kept)}
