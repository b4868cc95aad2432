--- Called by a waiter that leaves: passes on the wake-up it may have taken.
-- @key ready ZSET id -> place
-- @key state STRING packed
-- @key wake LIST
-- @key items HASH id -> data
-- @reply 1 when an element was put on wake, else 0
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(1)
local call = redis.call
local ready, state, wake, items = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local at = 1
--#part arity
--#part clock
--#part read_state
if call('LLEN', wake) > 0 or call('ZCARD', ready) == 0 and next_due > now + 4000000 then
  return 0
end
-- a no-op that the server allows when out of memory
call('ZREM', ready, '')
call('LPUSH', wake, '1')
return 1
