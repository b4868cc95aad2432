-- Leases the first `count` of head_ids. Leaves `taken`, the reply of lease, and `changed`.
local taken, n = {0, 0, 0}, math.min(count, #head_ids)
if n * largest > 1048576 then
  -- 200 items of 1 MiB in one call took 1.7 s: stop at 1 MiB of data, though never before the first item
  local budget = 1048576
  for i = 1, n do
    budget = budget - call('HSTRLEN', items, head_ids[i])
    if budget < 0 then
      n = math.max(1, i - 1)
      break
    end
  end
end
if n > 0 then
  local ids = n == #head_ids and head_ids or {unpack(head_ids, 1, n)}
  local data = call('HMGET', items, unpack(ids))
  call('ZCARD', leased)
  local deadline = now + duration * 1000
  -- as text once: the server spends 0.5 us on each number among the arguments
  local k, due_text, deadlines, new_records, gone = 0, string.format('%.0f', deadline), {}, {}, {}
  taken[2] = deadline
  for i = 1, n do
    local id, record = ids[i], records[i]
    if data[i] then
      clock = clock + 1
      if now > clock then
        clock = now
      end
      local attempts, fresh = 1, nil
      if record then
        --#part unpack_record
        attempts = attempt + 1
        fresh = struct.pack('<BBI4dd', 1, options, attempts, clock, created)
        if options ~= 0 then
          fresh = fresh .. string.sub(record, 23)
        end
      else
        -- its place without the level: an item whose record was lost may have had a priority
        local since = heads[2 * i] % 1125899906842624 + 1735689600000000
        fresh = struct.pack('<BBI4dd', 1, 0, 1, clock, since)
      end
      k = k + 1
      local at = 2 * k
      deadlines[at - 1] = due_text
      deadlines[at] = id
      new_records[at - 1] = id
      new_records[at] = fresh
      at = at + at
      taken[at] = id
      taken[at + 1] = data[i]
      taken[at + 2] = clock
      taken[at + 3] = attempts
    else
      if record then
        --#part unpack_record
      end
      gone[#gone + 1] = id
    end
  end
  if #gone > 0 then
    -- damage: an id without data is dropped and counted, as deep_clean does. These keys are read here, since only
    -- damage leads to them, and counted in before anything moves, since a counter may be damaged too.
    call('HLEN', counters)
    call('ZCARD', delayed)
    call('ZREM', ready, '')
    call('HINCRBY', counters, 'dropped', #gone)
  end
  taken[3] = k
  changed = true
  call('ZREM', ready, unpack(ids))
  if k > 0 then
    call('ZADD', leased, unpack(deadlines))
    call('HSET', meta, unpack(new_records))
    leases = leases + k
    next_due = math.min(next_due, deadline)
  end
  if #gone > 0 then
    call('HDEL', meta, unpack(gone))
  end
end
