-- Reads what is due, at most `sweep_limit` from each side, and refuses before anything is written. A lease without a
-- record (damage) is requeued as if it had never been leased. `died_kept`: who died and keeps an outcome, which this call
-- cannot write; the script declares it.
local due, late, places, deaths
local function plan_sweep()
  due = call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', '0', sweep_limit)
  late = call('ZRANGEBYSCORE', leased, '-inf', now, 'LIMIT', '0', sweep_limit)
  places, deaths, died_kept = {}, {}, {}
  call('HLEN', items)
  call('HLEN', counters)
  call('ZCARD', ready)
  call('ZCARD', dead)
  call('ZCARD', expiry)
  for side, ids in ipairs({due, late}) do
    local records = #ids > 0 and call('HMGET', meta, unpack(ids)) or {}
    for i, id in ipairs(ids) do
      local record, level, goes_to, score = records[i], 0, places, nil
      if record then
        local options, attempt, latest_token, created = decode_record(record)
        local priority, max_attempts, keep, expires = decode_options(record, options)
        max_attempts = attempts_limit(max_attempts, limits)
        level = priority
        if side == 2 and max_attempts > 0 and attempt >= max_attempts then
          goes_to, score = deaths, now
          if keep > 0 then
            died_kept[#died_kept + 1] = id
          end
        end
      end
      if goes_to == places then
        clock = math.max(clock + 1, now)
        score = clock - EPOCH_2025_US - level * PRIORITY_STEP
      end
      goes_to[#goes_to + 1] = score
      goes_to[#goes_to + 1] = id
    end
  end
end
