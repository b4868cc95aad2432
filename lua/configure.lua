--- Set the limits of a queue. What is held already stays.
-- @key items HASH id -> data
-- @key state STRING packed
-- @arg options integer 1..1
-- @arg option* name, value
-- @option max_data integer 1..536870912, bytes of data an item may have; 1048576 until it is set
-- @reply 1
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_FORMAT LEASEQ_WRONG_TYPE LEASEQ_OUT_OF_MEMORY
-- @complexity O(1)
local call = redis.call
local items, state = KEYS[1], KEYS[2]
--#part integer
integer(ARGV[1], 1, 1, 'the number of options')
if ARGV[2] ~= 'max_data' then
  error('LEASEQ_BAD_ARGUMENT configure takes max_data', 0)
end
local max_data, at = integer(ARGV[3], 1, 536870912, 'max_data'), 4
--#part arity
--#part read_state
limits = struct.pack('<I4', max_data) .. string.sub(limits, 5)
--#part write_state
return 1
