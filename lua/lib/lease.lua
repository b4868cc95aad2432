-- Leasing: ready items get a deadline and a token.

-- Takes the key `meta`, the id and the score of the next ready item, the clock of the queue and the server's time. Gives the item's
-- token, its attempt, and its record once it is leased: nil where its options take more than this.
--#inline
local function lease_one(meta, id, score, clock, now)
  local record, attempts, new_record = call('HGET', meta, id), 1, nil
  local token = next_token(clock, now)
  if record then
    local options, attempt, _, created = decode_record(record)
    attempts = attempt + 1
    if options == 0 then
      new_record = encode_record(0, attempts, token, created)
    elseif options == HAS_OPTIONS and string.sub(record, KEEP_AT) == NO_KEEP_NO_EXPIRY then
      new_record = struct.pack(RECORD_FORMAT, FORMAT_VERSION, HAS_OPTIONS, attempts, token, created) .. string.sub(record, OPTIONS_AT)
    end
  else
    local since = time_of_score(score)
    new_record = encode_record(0, 1, token, since)
  end
  return token, attempts, new_record
end

-- Takes the key `state`, what load_state gives with the token as clock, and the deadline of the one item that was leased. Gives next_due.
--#inline
local function save_one_lease(state, flags, token, next_due, largest, added, leases, limits, deadline)
  local earliest = deadline < next_due and deadline or next_due
  local leases_so_far = leases + 1
  save_state(state, flags, token, earliest, largest, added, leases_so_far, limits)
  return earliest
end

-- Takes the keys, whether no wake-up is pending, next_due and the server's time. Behind the lease of one item, wakes a worker if
-- more is ready or a time comes within the cap: otherwise it is lost with the client that knows it.
--#inline
local function wake_after_lease(ready, wake, no_wake_pending, next_due, now)
  if no_wake_pending and (next_due <= now + WAIT_CAP_US or call('ZCARD', ready) > 0) then
    call('LPUSH', wake, '1')
  end
end

-- Takes a queue and how many to read. Gives the ids of the next ready items, (id, score) of each in one list, and their records
-- (false: none). Scores are for items without a record: where many are read and the first has one, they are left out, since
-- the server spends 0.25 us on each.
local function peek_ready(queue, count)
  local ready, meta = queue.ready, queue.meta
  local first = count >= LARGE_BATCH and call('ZRANGE', ready, '0', '0')[1]
  local ids, scored = {}, {}
  if first and call('HEXISTS', meta, first) == 1 then
    ids = call('ZRANGE', ready, '0', count - 1)
  else
    scored = call('ZRANGE', ready, '0', count - 1, 'WITHSCORES')
    for i = 1, #scored / 2 do
      ids[i] = scored[2 * i - 1]
    end
  end
  return ids, scored, #ids > 0 and call('HMGET', meta, unpack(ids)) or {}
end

-- Takes records. Refuses a damaged one before the first write. Gives whether one of the items was leased before.
local function check_records(records)
  local leased_before = false
  for _, record in ipairs(records) do
    if record then
      local _, _, latest_token, _ = decode_record(record)
      leased_before = leased_before or latest_token > 0
    end
  end
  return leased_before
end

-- Takes the key `items`, ids and how many of them are wanted. Gives how many have MAX_BATCH_BYTES of data together, at least one.
local function count_within_budget(items, ids, count)
  local budget = MAX_BATCH_BYTES
  for i = 1, count do
    budget = budget - call('HSTRLEN', items, ids[i])
    if budget < 0 then
      return math.max(1, i - 1)
    end
  end
  return count
end

-- Takes a queue, the server's time, ids without data, ids that expired before they were leased, the list for ids that die and keep an
-- outcome. Ids without data are damage: they are counted, as deep_clean does, and dropped by the caller. Only these lead to
-- these keys, which are read here; and counted before anything moves, since a counter may be damaged too.
local function drop_unleasable(queue, now, missing, expired, expired_to_dead, dead_with_outcome)
  -- A key of another type fails here, before the first write.
  call('HLEN', queue.counters)
  call('ZCARD', queue.delayed)
  call('ZCARD', queue.expiry)
  call('ZCARD', queue.dead)
  allow_writes_when_full(queue.ready)
  if #missing > 0 then
    increment_counter(queue.counters, 'dropped', #missing)
  end
  expire(queue, now, expired, expired_to_dead, dead_with_outcome)
end

-- Takes a queue, the server's time, the duration in ms, what peek_ready gives and the list for ids that die and keep an outcome.
-- Leases up to `count`, none while the queue is paused, and leaves the clock, leases and next_due in `queue`. Gives the reply of
-- lease, and whether anything changed.
local function lease_batch(queue, now, count, duration, ready_ids, scored, records, dead_with_outcome)
  local items, meta, ready = queue.items, queue.meta, queue.ready
  local reply, n = {0, 0, 0}, is_paused(queue.flags) and 0 or math.min(count, #ready_ids)
  if n * queue.largest > MAX_BATCH_BYTES then
    n = count_within_budget(items, ready_ids, n)
  end
  if n == 0 then
    return reply, false
  end
  local ids = n == #ready_ids and ready_ids or {unpack(ready_ids, 1, n)}
  local data = call('HMGET', items, unpack(ids))
  -- A key of another type fails here, before the first write.
  call('ZCARD', queue.leased)
  local clock, deadline = queue.clock, now + duration * 1000
  -- as text once: the server spends 0.5 us on each number among the arguments
  local k, deadline_text, deadlines, new_records, missing = 0, string.format('%.0f', deadline), {}, {}, {}
  -- what the options of items make: first leases that end an expiry, ids that expired, what the reply says behind the items
  local unexpired, expired, expired_to_dead, metadata, extra_fields, extra_of = {}, {}, {}, {}, {}, {}
  for i = 1, n do
    local id, record = ids[i], records[i]
    -- the list that the id goes to when it cannot be leased
    local ended = not data[i] and missing
    local attempts, new_record = 1, nil
    if record then
      local options, attempt, _, created = decode_record(record)
      if not ended then
        local encoded_options = ''
        if options ~= 0 then
          local priority, max_attempts, keep, expires = decode_options(record, options)
          if expires > 0 and expires <= now then
            ended = options >= DIES_ON_EXPIRY and expired_to_dead or expired
          else
            if expires > 0 then
              unexpired[#unexpired + 1] = id
            end
            if keep > 0 then
              metadata[#metadata + 1] = k + 1
              metadata[#metadata + 1] = 'keep'
              metadata[#metadata + 1] = keep
            end
            if has_extra(options) then
              extra_fields[#extra_fields + 1] = '\0' .. id
              extra_of[#extra_of + 1] = k + 1
            end
            encoded_options = encode_options(priority, max_attempts, keep, 0)
          end
        end
        if not ended then
          clock = next_token(clock, now)
          attempts = attempt + 1
          new_record = struct.pack(RECORD_FORMAT, FORMAT_VERSION, options, attempts, clock, created) .. encoded_options
        end
      end
    elseif not ended then
      clock = next_token(clock, now)
      -- the time in its score without the priority: an item whose record was lost may have had one
      local created = time_of_score(scored[2 * i] or call('ZSCORE', ready, id))
      new_record = encode_record(0, 1, clock, created)
    end
    if ended then
      ended[#ended + 1] = id
    else
      k = k + 1
      local at = 2 * k
      deadlines[at - 1] = deadline_text
      deadlines[at] = id
      new_records[at - 1] = id
      new_records[at] = new_record
      at = at + at
      reply[at] = id
      reply[at + 1] = data[i]
      reply[at + 2] = clock
      reply[at + 3] = attempts
    end
  end
  if #extra_fields > 0 then
    for i, extra in ipairs(call('HMGET', meta, unpack(extra_fields))) do
      if extra then
        decode_extra(extra, extra_of[i], metadata)
      end
    end
  end
  if #missing + #expired + #expired_to_dead > 0 then
    drop_unleasable(queue, now, missing, expired, expired_to_dead, dead_with_outcome)
  elseif #unexpired > 0 then
    -- A key of another type fails here, before the first write.
    call('ZCARD', queue.expiry)
  end
  reply[3] = k
  call('ZREM', ready, unpack(ids))
  if k > 0 then
    reply[2] = deadline
    call('ZADD', queue.leased, unpack(deadlines))
    if k >= LARGE_BATCH then
      -- The server keeps a small hash as a list, where it takes 3 us to find one of 256 records. A value of more than 64
      -- bytes makes it a table, which it stays until it is empty.
      new_records[2 * k + 1], new_records[2 * k + 2] = '', string.rep(' ', 65)
      call('HSET', meta, unpack(new_records))
      call('HDEL', meta, '')
    else
      call('HSET', meta, unpack(new_records))
    end
    queue.leases = queue.leases + k
    queue.next_due = math.min(queue.next_due, deadline)
  end
  if #unexpired > 0 then
    call('ZREM', queue.expiry, unpack(unexpired))
  end
  for _, id in ipairs(missing) do
    call('HDEL', meta, id, '\0' .. id)
    call('ZREM', queue.expiry, id)
  end
  for i = 1, #metadata do
    reply[#reply + 1] = metadata[i]
  end
  queue.clock = clock
  return reply, true
end

-- Takes a queue, the server's time, the reply of lease_batch, whether anything changed, and ids that died and keep an outcome.
-- Completes the reply, saves the state and wakes a worker when something becomes leasable if nothing was. A lease that changed
-- nothing wakes no one: otherwise blocked workers would wake each other without end.
local function finish_lease(queue, now, reply, changed, dead_with_outcome)
  local ready = queue.ready
  local any_ready = not is_paused(queue.flags) and call('ZCARD', ready) > 0
  if reply[3] == 0 and not any_ready then
    local next_due = read_next_due(queue.delayed, queue.leased)
    queue.next_due = next_due
    reply[1] = next_due < NEVER and math.max(0, next_due - now) or -1
    if next_due ~= queue.next_due_read and not changed then
      -- Store the time that this waiter gets: a later call announces a timer only if it is nearer than the stored one.
      allow_writes_when_full(ready)
      save_queue(queue)
    end
  end
  if changed then
    save_queue(queue)
    if queue.no_wake_pending and (any_ready or reply[3] > 0 and queue.next_due <= now + WAIT_CAP_US) then
      call('LPUSH', queue.wake, '1')
    end
  end
  for _, id in ipairs(dead_with_outcome) do
    reply[#reply + 1] = 0
    reply[#reply + 1] = 'died'
    reply[#reply + 1] = id
  end
  signal_room(queue.signal_producer, queue.max_items, queue.items, queue.dead, ready, queue.room)
end

-- Takes a queue, the server's time, the number of items and the duration in ms. Promotes, reclaims, leases. Gives the reply of
-- lease, and whether anything but next_due changed.
local function reclaim_and_lease(queue, now, count, duration)
  local dead_with_outcome, moved = {}, false
  if now >= queue.next_due then
    local plan = plan_reclaim(queue, now, RECLAIM_LIMIT)
    local _, _, records = peek_ready(queue, count)
    check_records(records)
    reclaim(queue, plan)
    dead_with_outcome, moved = plan.dead_with_outcome, #plan.due + #plan.expired_leases > 0
  end
  local ids, scored, records = peek_ready(queue, count)
  local reply, leased = lease_batch(queue, now, count, duration, ids, scored, records, dead_with_outcome)
  finish_lease(queue, now, reply, moved or leased, dead_with_outcome)
  return reply, moved or leased
end
