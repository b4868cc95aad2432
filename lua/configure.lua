--- Set the limits of a queue, pause or resume it. What is held already stays.
-- @key items HASH id -> data
-- @key ready ZSET id -> place
-- @key dead ZSET id -> time of death, us
-- @key state STRING packed
-- @key wake LIST
-- @key room LIST
-- @arg options options
-- @option max_data integer 1..536870912, bytes that the data of an item may have; 1048576 by default (LQ-CONFIG-1)
-- @option max_items integer 0..4294967295, the most items it holds, without dead ones; 0 is unlimited (LQ-CONFIG-2)
-- @option max_attempts integer 0..65534, for items added without max_attempts; 0 is unlimited (LQ-CONFIG-3)
-- @option paused boolean, while it is 1, nothing is leased (LQ-PAUSE-1)
-- @reply done boolean
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(1)
local items, ready, dead, state, wake, room = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local ranges = {max_data = {1, 536870912}, max_items = {0, 4294967295}, max_attempts = {0, 65534}, paused = {0, 1}}
local values, at = {}, 2
for _ = 1, parse_integer(ARGV[1], 1, 4, 'the number of options') do
  local name = ARGV[at] or ''
  local range = ranges[name]
  if not range or values[name] then
    error('LEASEQ_BAD_ARGUMENT configure takes max_data, max_items, max_attempts and paused, once each', 0)
  end
  values[name] = parse_integer(ARGV[at + 1], range[1], range[2], name)
  at = at + 2
end
check_argument_count(ARGV, at)
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local max_data, old_items, max_attempts = struct.unpack(LIMITS_FORMAT, limits)
limits = struct.pack(
  LIMITS_FORMAT,
  values.max_data or max_data,
  values.max_items or old_items,
  values.max_attempts or max_attempts
)
if values.paused then
  flags = flags - flags % 2 + values.paused
end
local no_wake_pending = call('LLEN', wake) == 0
local no_room_pending = call('LLEN', room) == 0
local is_ready = call('ZCARD', ready) > 0
local held = call('HLEN', items) - call('ZCARD', dead)
-- a queue that is paused can be resumed and drained on a full server
allow_writes_when_full(ready)
save_state(state, flags, clock, next_due, largest, added, leases, limits)
if no_wake_pending and values.paused == 0 and (is_ready or next_due < NEVER) then
  call('LPUSH', wake, '1')
end
if no_room_pending and values.max_items and (values.max_items == 0 or held < values.max_items) then
  call('LPUSH', room, '1')
end
return 1
