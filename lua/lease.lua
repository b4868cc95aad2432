--- Lease up to count ready items until a deadline. First promotes due items and reclaims expired leases (64 of each).
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
-- @reply wait, deadline, n, then n times (id, data, token, attempt), then times (k, name, value): keep in ms, content_type, header:NAME of item k; for k 0 died and the id
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each item leased, promoted or reclaimed
local items, meta, ready, delayed, leased, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local expiry, state, wake, room, counters = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local count, duration = parse_lease_arguments(ARGV[1], ARGV[2])
if #ARGV ~= 2 then
  error('LEASEQ_BAD_ARGUMENT lease takes count and duration', 0)
end
local now = server_time()
local stored, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local asleep, paused, died_kept = call('LLEN', wake) == 0, flags % 2 == 1, {}
local max_items, tell_room = needs_room_signal(limits, room, items, dead)
if count == 1 and now < next_due and not paused then
  -- The hot path: the same as below for one item with no option but priority and max_attempts, without tables.
  local head = call('ZRANGE', ready, '0', '0', 'WITHSCORES')
  local id = head[1]
  local data = id and call('HGET', items, id)
  if data then
    --#part lease_one
    if fresh then
      local deadline = now + duration * 1000
      call('ZREM', ready, id)
      -- a key of another type is found here and undone: cheaper than to look at it each time
      local held = redis.pcall('ZADD', leased, deadline, id)
      if type(held) == 'table' then
        call('ZADD', ready, head[2], id)
        error(held.err, 0)
      end
      --#part lease_one_end
      return {0, deadline, 1, id, data, token, attempts}
    end
  end
end
--#functions
local bound_read, changed = next_due, false
--#part lease_heads
if now >= next_due then
  local sweep_limit = 64
  --#part sweep_plan
  plan_sweep()
  read_heads(count)
  check_heads()
  --#part sweep
  changed = #due + #late > 0
end
read_heads(count)
--#part lease_take
--#part lease_end
return taken
