--- Counts by state, cumulative counters and limits. Read-only.
-- @key items HASH id -> data
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key kept ZSET id -> end of its outcome, us
-- @key state STRING packed
-- @key counters HASH name -> count
-- @reply counts named
-- @reply* now time_us
-- @reply* items integer
-- @reply* ready integer
-- @reply* delayed integer
-- @reply* leased integer
-- @reply* dead integer
-- @reply* kept integer
-- @reply* overdue integer
-- @reply* due integer
-- @reply* waited us
-- @reply* added integer
-- @reply* leases integer
-- @reply* completed integer
-- @reply* promoted integer
-- @reply* reclaimed integer
-- @reply* released integer
-- @reply* died integer
-- @reply* expired integer
-- @reply* revived integer
-- @reply* purged integer
-- @reply* removed integer
-- @reply* dropped integer
-- @reply* largest integer
-- @reply* max_data integer
-- @reply* max_items integer
-- @reply* max_attempts integer
-- @reply* paused boolean
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n)
local items, ready, delayed, leased = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, kept, state, counters = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
check_argument_count(ARGV, 1)
local now = server_time()
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local names = {'promoted', 'reclaimed', 'released', 'died', 'expired', 'revived', 'purged', 'removed', 'dropped'}
local counts = call('HMGET', counters, unpack(names))
local held = call('HLEN', items)
local ended = 0
for i, name in ipairs(names) do
  -- a counter that is no whole number above 0, or that HINCRBY can no longer raise, counts as 0; `tonumber` alone would take 1.5, 0x10 and nan
  local text = counts[i] or ''
  if #text > 19 or not string.find(text, '^[1-9][0-9]*$') or #text == 19 and text >= '9223372036854775807' then
    counts[i] = 0
  else
    counts[i] = math.min(tonumber(text), 9223372036854774784)
  end
  if name == 'expired' or name == 'purged' or name == 'removed' or name == 'dropped' then
    ended = ended + counts[i]
  end
end
local waited = 0
local place = call('ZRANGE', ready, '0', '0', 'WITHSCORES')[2]
if place then
  waited = math.max(0, now - EPOCH_2025_US - place % PRIORITY_STEP)
end
local reply = {
  'now', now, 'items', held,
  'ready', call('ZCARD', ready), 'delayed', call('ZCARD', delayed),
  'leased', call('ZCARD', leased), 'dead', call('ZCARD', dead), 'kept', call('ZCARD', kept),
  'overdue', call('ZCOUNT', leased, '-inf', now), 'due', call('ZCOUNT', delayed, '-inf', now),
  'waited', waited, 'added', added, 'leases', leases,
  'completed', math.max(0, added - held - ended),
}
for i, name in ipairs(names) do
  reply[#reply + 1] = name
  reply[#reply + 1] = counts[i]
end
local max_data, max_items, max_attempts = struct.unpack(LIMITS_FORMAT, limits)
for _, pair in ipairs({
  {'largest', largest},
  {'max_data', max_data > 0 and max_data or DEFAULT_MAX_DATA},
  {'max_items', max_items},
  {'max_attempts', max_attempts},
  {'paused', flags % 2},
}) do
  reply[#reply + 1] = pair[1]
  reply[#reply + 1] = pair[2]
end
return reply
