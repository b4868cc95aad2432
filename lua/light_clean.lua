--- Promote due items and requeue expired leases, at most limit of each. Idempotent.
-- @key items HASH id -> data
-- @key meta HASH id -> record
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key state STRING packed
-- @key wake LIST
-- @key counters HASH name -> count
-- @arg limit integer 1..256
-- @reply promoted, reclaimed, died, wait: us until something is due, 0 when more is left, -1 when nothing will be
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each item promoted or reclaimed
local call = redis.call
local items, meta, ready, delayed, leased = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dead, state, wake, counters = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
--#part integer
local sweep_limit, at = integer(ARGV[1], 1, 256, 'limit'), 2
--#part arity
--#part clock
--#part read_state
local bound_read, asleep = next_due, call('LLEN', wake) == 0
--#part sweep_plan
plan_sweep()
--#part sweep
if #due + #late > 0 or next_due ~= bound_read then
  -- a no-op that the server allows when out of memory, where nothing was due
  call('ZREM', ready, '')
  --#part write_state
  if asleep and call('ZCARD', ready) > 0 then
    call('LPUSH', wake, '1')
  end
end
local wait = next_due < 9007199254740992 and math.max(0, next_due - now) or -1
return {#due, reclaimed, #deaths / 2, wait}
