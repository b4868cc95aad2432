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
-- @arg duration ms 1..2592000000
-- @reply wait us, until something is leasable; 0: ask again at once; -1 when nothing will be
-- @reply deadline time_us
-- @reply items count
-- @reply* id id
-- @reply* data bytes
-- @reply* token token
-- @reply* attempt integer
-- @reply extras rest, properties of items that have them: keep in ms, content_type, header:NAME; and died with the id of an item that died
-- @reply* item integer, its number from 1; for died 0, or minus the number of its queue
-- @reply* name bytes
-- @reply* value any
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_CLOCK LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each item leased, promoted or reclaimed
local items, meta, ready, delayed, leased, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local expiry, state, wake, room, counters = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local count, duration = parse_lease_arguments(ARGV[1], ARGV[2])
if #ARGV ~= 2 then
  error('LEASEQ_BAD_ARGUMENT lease takes count and duration', 0)
end
local now = server_time()
local _, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
local no_wake_pending = call('LLEN', wake) == 0
local max_items, signal_producer = needs_room_signal(limits, room, items, dead)
if count == 1 and now < next_due and not is_paused(flags) then
  -- The hot path: the same as below for one item with no option but priority and max_attempts, without tables.
  local head = call('ZRANGE', ready, '0', '0', 'WITHSCORES')
  local id = head[1]
  local data = id and call('HGET', items, id)
  if data then
    local token, attempts, new_record = lease_one(meta, id, head[2], clock, now)
    if new_record then
      local deadline = now + duration * 1000
      call('ZREM', ready, id)
      -- a key of another type is found here and undone: cheaper than to look at it each time
      local result = redis.pcall('ZADD', leased, deadline, id)
      if type(result) == 'table' then
        call('ZADD', ready, head[2], id)
        error(result.err, 0)
      end
      call('HSET', meta, id, new_record)
      next_due = save_one_lease(state, flags, token, next_due, largest, added, leases, limits, deadline)
      wake_after_lease(ready, wake, no_wake_pending, next_due, now)
      signal_room(signal_producer, max_items, items, dead, ready, room)
      return {0, deadline, 1, id, data, token, attempts}
    end
  end
end
--#functions
local queue = {
  items = items, meta = meta, ready = ready, delayed = delayed, leased = leased, dead = dead,
  expiry = expiry, state = state, wake = wake, room = room, counters = counters,
  flags = flags, clock = clock, next_due = next_due, largest = largest, added = added, leases = leases,
  limits = limits, next_due_read = next_due, max_items = max_items,
  no_wake_pending = no_wake_pending, signal_producer = signal_producer,
}
local reply = reclaim_and_lease(queue, now, count, duration)
return reply
