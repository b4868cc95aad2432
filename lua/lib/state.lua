-- The state of a queue: 44 bytes, the longest string that the server embeds. Calls for one item hold it in locals; the others
-- in a table, called `queue`, of the queue's keys and of what load_state gives, by their names.

-- Takes the keys `state` and `items`. Gives what is stored (false: nothing), flags (1 paused, 2 outcomes are kept), clock, next_due,
-- largest, added, leases and limits (max_data, max_items, max_attempts; packed).
--#inline
local function decode_state(state, items)
  local stored = call('GET', state)
  local format, flags, clock, next_due, largest, added, leases, limits
  if stored then
    if #stored ~= STATE_BYTES then
      error('LEASEQ_FORMAT the state of this queue has an unknown format: upgrade this client', 0)
    end
    format, flags, clock, next_due, largest, added, leases, limits = struct.unpack(STATE_FORMAT, stored)
    if format ~= FORMAT_VERSION or flags > ALL_FLAGS then
      error('LEASEQ_FORMAT the state of this queue has an unknown format or flag: upgrade this client', 0)
    end
  else
    -- A new queue; or one whose state was lost: next_due 0 means that the bound is unknown, so that the next lease looks
    -- for itself, and items of unknown size are measured before they are read.
    added = call('HLEN', items)
    flags, clock, next_due, largest, leases, limits = 0, 0, NEVER, 0, 0, NO_LIMITS
    if added > 0 then
      next_due, largest = 0, UNKNOWN_SIZE
    end
  end
  return stored, flags, clock, next_due, largest, added, leases, limits
end

-- As decode_state, for every script except deep_clean: a state whose times are not times is refused, since
-- every later place and token would be wrong.
--#inline
local function load_state(state, items)
  local stored, flags, clock, next_due, largest, added, leases, limits = decode_state(state, items)
  if not (clock < LATEST_TIME_US and next_due >= 0) then
    error('LEASEQ_FORMAT the state of this queue is damaged: run deep_clean', 0)
  end
  return stored, flags, clock, next_due, largest, added, leases, limits
end

-- Takes the key and what load_state gives.
--#inline
local function save_state(state, flags, clock, next_due, largest, added, leases, limits)
  call('SET', state, struct.pack(STATE_FORMAT, FORMAT_VERSION, flags, clock, next_due, largest, added, leases, limits))
end

-- Takes a queue: a table of its keys and of what load_state gives, by their names.
local function save_queue(queue)
  local flags, clock, next_due, largest = queue.flags, queue.clock, queue.next_due, queue.largest
  save_state(queue.state, flags, clock, next_due, largest, queue.added, queue.leases, queue.limits)
end

-- Takes the keys. Gives the exact next due time or deadline; NEVER when there is none, 0 where damage made it less than any time.
--#inline
local function read_next_due(delayed, leased)
  local first_delayed = call('ZRANGE', delayed, '0', '0', 'WITHSCORES')[2]
  local first_leased = call('ZRANGE', leased, '0', '0', 'WITHSCORES')[2]
  local next_due = math.min(tonumber(first_delayed or NEVER), tonumber(first_leased or NEVER))
  return math.max(0, next_due)
end

-- Takes flags. Gives whether the queue is paused: nothing is leased.
--#inline
local function is_paused(flags)
  return flags % 2 == 1
end

-- Takes flags. Gives whether outcomes are kept, so that ids may be in `kept`.
--#inline
local function keeps_outcomes(flags)
  return flags >= KEEPS_OUTCOMES
end

-- Takes flags. Gives them with the flag for kept outcomes set.
--#inline
local function with_outcomes_flag(flags)
  return keeps_outcomes(flags) and flags or flags + KEEPS_OUTCOMES
end

-- Takes an item's limit of attempts and the limits of its queue. Gives the limit that applies, 0 for none.
--#inline
local function attempts_limit(max_attempts, limits)
  local limit = max_attempts
  if max_attempts == 0 then
    limit = struct.unpack('<I2', limits, 9)
  elseif max_attempts == UNLIMITED_ATTEMPTS then
    limit = 0
  end
  return limit
end
