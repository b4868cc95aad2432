-- What time brings: delayed items that are due, leases that expired, and items that expire before they are leased.

-- Takes a queue, the server's time and how many to read from each side; writes nothing but the clock in `queue`. Gives a plan, of
-- which everything is checked before anything is written: `due` and `expired_leases`, ids; `scores` and `deaths`, arguments
-- of ZADD; `dead_with_outcome`, ids that die and keep an outcome, which only a call that has their key can write. A lease
-- without a record (damage) is requeued as if it had never been leased.
local function plan_reclaim(queue, now, limit)
  local due = call('ZRANGEBYSCORE', queue.delayed, '-inf', now, 'LIMIT', '0', limit)
  local expired_leases = call('ZRANGEBYSCORE', queue.leased, '-inf', now, 'LIMIT', '0', limit)
  local scores, deaths, dead_with_outcome = {}, {}, {}
  local clock, limits = queue.clock, queue.limits
  -- A key of another type fails here, before the first write.
  call('HLEN', queue.items)
  call('HLEN', queue.counters)
  call('ZCARD', queue.ready)
  call('ZCARD', queue.dead)
  call('ZCARD', queue.expiry)
  for side, ids in ipairs({due, expired_leases}) do
    local records = #ids > 0 and call('HMGET', queue.meta, unpack(ids)) or {}
    for i, id in ipairs(ids) do
      local record, item_priority, dies = records[i], 0, false
      if record then
        local options, attempt, _, _ = decode_record(record)
        local priority, max_attempts, keep, _ = decode_options(record, options)
        max_attempts = attempts_limit(max_attempts, limits)
        item_priority = priority
        if side == 2 and max_attempts > 0 and attempt >= max_attempts then
          dies = true
          deaths[#deaths + 1] = now
          deaths[#deaths + 1] = id
          if keep > 0 then
            dead_with_outcome[#dead_with_outcome + 1] = id
          end
        end
      end
      if not dies then
        clock = next_token(clock, now)
        local score = ready_score(clock, item_priority)
        scores[#scores + 1] = score
        scores[#scores + 1] = id
      end
    end
  end
  queue.clock = clock
  return {
    due = due, expired_leases = expired_leases, scores = scores, deaths = deaths, dead_with_outcome = dead_with_outcome,
  }
end

-- Takes a queue and what plan_reclaim gave for it; leaves the exact next_due in `queue`. Gives how many leases were reclaimed. The
-- counters come first: a counter that is no number (damage) must not stop the script between two states of an item.
local function reclaim(queue, plan)
  local due, expired_leases, deaths = plan.due, plan.expired_leases, plan.deaths
  local reclaimed = #expired_leases - #deaths / 2
  if #due + #expired_leases > 0 then
    allow_writes_when_full(queue.leased)
  end
  if #due > 0 then
    increment_counter(queue.counters, 'promoted', #due)
  end
  if reclaimed > 0 then
    increment_counter(queue.counters, 'reclaimed', reclaimed)
  end
  if #deaths > 0 then
    increment_counter(queue.counters, 'died', #deaths / 2)
  end
  if #due > 0 then
    call('ZREM', queue.delayed, unpack(due))
  end
  if #expired_leases > 0 then
    call('ZREM', queue.leased, unpack(expired_leases))
  end
  if #plan.scores > 0 then
    call('ZADD', queue.ready, unpack(plan.scores))
  end
  if #deaths > 0 then
    call('ZADD', queue.dead, unpack(deaths))
  end
  queue.next_due = read_next_due(queue.delayed, queue.leased)
  return reclaimed
end

-- Takes a queue, the server's time and ids whose time in `expiry` has come; writes nothing. Gives those that vanish and those
-- that die; the others are only in the index by damage.
local function plan_expiry(queue, now, ids)
  local expired, expired_to_dead = {}, {}
  for i, record in ipairs(#ids > 0 and call('HMGET', queue.meta, unpack(ids)) or {}) do
    local id = ids[i]
    if record then
      local options, _, _, _ = decode_record(record)
      local _, _, _, expires = decode_options(record, options)
      if
        expires > 0
        and expires <= now
        and call('HEXISTS', queue.items, id) == 1
        and not call('ZSCORE', queue.leased, id)
        and not call('ZSCORE', queue.dead, id)
      then
        local list = options >= DIES_ON_EXPIRY and expired_to_dead or expired
        list[#list + 1] = id
      end
    end
  end
  return expired, expired_to_dead
end

-- Takes a queue, the server's time, ids that vanish and ids that die, as plan_expiry gives them, and the list that ids go to which
-- die and keep an outcome. The keys were read, and writes are allowed when the server is full.
local function expire(queue, now, expired, expired_to_dead, dead_with_outcome)
  local items, meta, expiry = queue.items, queue.meta, queue.expiry
  if #expired > 0 then
    increment_counter(queue.counters, 'expired', #expired)
    call('HDEL', items, unpack(expired))
  end
  if #expired_to_dead > 0 then
    increment_counter(queue.counters, 'died', #expired_to_dead)
  end
  for _, id in ipairs(expired) do
    call('HDEL', meta, id, '\0' .. id)
    call('ZREM', expiry, id)
  end
  for _, id in ipairs(expired_to_dead) do
    local record, extra = call('HGET', meta, id), call('HGET', meta, '\0' .. id)
    local options, attempt, latest_token, created = decode_record(record)
    local priority, max_attempts, keep, _ = decode_options(record, options)
    if keep > 0 then
      dead_with_outcome[#dead_with_outcome + 1] = id
    end
    record = struct.pack(
      RECORD_WITH_OPTIONS_FORMAT, FORMAT_VERSION, ALL_OPTIONS, attempt, latest_token, created, priority, max_attempts, keep, 0
    )
    call('HSET', meta, id, record)
    call('HSET', meta, '\0' .. id, set_last_error(extra, 'expired'))
    call('ZADD', queue.dead, now, id)
    call('ZREM', expiry, id)
  end
end
