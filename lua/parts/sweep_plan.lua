-- Reads what is due, at most `sweep_limit` from each side, and refuses before anything is written. A lease without a
-- record (damage) is requeued as if it had never been leased.
local due, late, places, deaths
local function plan_sweep()
  due = call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', '0', sweep_limit)
  late = call('ZRANGEBYSCORE', leased, '-inf', now, 'LIMIT', '0', sweep_limit)
  places, deaths = {}, {}
  call('HLEN', items)
  call('HLEN', counters)
  call('ZCARD', ready)
  call('ZCARD', dead)
  for side, ids in ipairs({due, late}) do
    local records = #ids > 0 and call('HMGET', meta, unpack(ids)) or {}
    for i, id in ipairs(ids) do
      local record, tries, priority, max_attempts = records[i], 0, 0, 0
      if record then
        --#part unpack_record
        tries = attempt
        if options == 1 then
          priority, max_attempts = struct.unpack('<bI2', string.sub(record, 23))
        end
      end
      local goes_to, score = places, nil
      if side == 2 and max_attempts > 0 and tries >= max_attempts then
        goes_to, score = deaths, now
      else
        clock = math.max(clock + 1, now)
        score = clock - 1735689600000000 - priority * 1125899906842624
      end
      goes_to[#goes_to + 1] = score
      goes_to[#goes_to + 1] = id
    end
  end
end
