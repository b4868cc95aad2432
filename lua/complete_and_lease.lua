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
-- @arg duration integer 1..2592000000, ms
-- @arg entries integer 1..256
-- @arg entry* id, token, options (0..1), then options times (name, value)
-- @option only_current 1: only while this lease is the current one
-- @reply that of lease, then for each entry 1 or 0, the last `entries` elements
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry and for each item leased, promoted or reclaimed
local items, meta, ready, delayed, leased, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local expiry, state, wake, room, counters = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local count, duration = parse_lease_arguments(ARGV[1], ARGV[2])
local at = 3
local now = server_time()
local stored, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local bound_read, asleep, paused, died_kept = next_due, call('LLEN', wake) == 0, flags % 2 == 1, {}
local max_items, tell_room = needs_room_signal(limits, room, items, dead)
if count == 1 and ARGV[3] == '1' and ARGV[6] == '0' and #ARGV == 6 and now < next_due and not paused then
  -- The hot path: the same as below for one item that this call completes and one to lease that is another.
  local finished, finished_extra
  do
    local id = ARGV[4]
    local token = parse_token(ARGV[5])
    local record = string.byte(id) ~= 0 and call('HGET', meta, id)
    if record then
      local options, attempt, latest_token, created = decode_record(record)
      if token > created and token <= latest_token then
        finished, finished_extra = id, options % 4 >= 2
      end
    end
  end
  local head = finished and call('ZRANGE', ready, '0', '0', 'WITHSCORES') or {}
  local id = head[1]
  local data = id and id ~= finished and call('HGET', items, id)
  if data then
    --#part lease_one
    if fresh then
      -- Each ZREM that finds nothing changes nothing, so a wrong type behind it changes nothing either.
      if
        call('ZREM', leased, finished) == 0
        and call('ZREM', ready, finished) == 0
        and call('ZREM', delayed, finished) == 0
      then
        call('ZREM', dead, finished)
      end
      call('HDEL', items, finished)
      if finished_extra then
        call('HDEL', meta, finished, '\0' .. finished)
      else
        call('HDEL', meta, finished)
      end
      local deadline = now + duration * 1000
      call('ZREM', ready, id)
      call('ZADD', leased, deadline, id)
      --#part lease_one_end
      return {0, deadline, 1, id, data, token, attempts, 1}
    end
  end
end
--#functions
call('HLEN', counters)
call('ZCARD', expiry)
--#part complete_plan
local changed = false
--#part lease_heads
read_heads(count)
if check_heads() then
  -- what this call completes may be among them: then others come to the front
  read_heads(count + entries)
  check_heads()
end
if now >= next_due then
  -- Planned twice: before anything is written, so that bad records are refused, and again without what was completed,
  -- each of which makes room for one more.
  local sweep_limit, before = 64 + entries, clock
  --#part sweep_plan
  plan_sweep()
  clock = before
  --#part complete_write
  sweep_limit = 64
  plan_sweep()
  --#part sweep
  changed = #due + #late > 0
else
  --#part complete_write
end
if changed or elsewhere then
  read_heads(count)
end
--#part lease_take
--#part lease_end
for i = 1, entries do
  taken[#taken + 1] = answers[i]
end
return taken
