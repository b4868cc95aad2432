-- Leases the first `count` of head_ids, none while the queue is paused. Leaves `taken`, the reply of lease, and `changed`.
local taken, n = {0, 0, 0}, paused and 0 or math.min(count, #head_ids)
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
  -- what the options of items make: first leases that end an expiry, ids that expired, what is told behind the items
  local unexpired, expired, lapsed, more, extra_fields, extra_of = {}, {}, {}, {}, {}, {}
  for i = 1, n do
    local id, record = ids[i], records[i]
    local ended = not data[i] and gone
    local attempts, fresh = 1, nil
    if record then
      local options, attempt, latest_token, created = decode_record(record)
      if not ended then
        local tail = ''
        if options ~= 0 then
          local priority, max_attempts, keep, expires = decode_options(record, options)
          if expires > 0 and expires <= now then
            ended = options >= 4 and lapsed or expired
          else
            if expires > 0 then
              unexpired[#unexpired + 1] = id
            end
            if keep > 0 then
              more[#more + 1] = k + 1
              more[#more + 1] = 'keep'
              more[#more + 1] = keep
            end
            if options % 4 >= 2 then
              extra_fields[#extra_fields + 1] = '\0' .. id
              extra_of[#extra_of + 1] = k + 1
            end
            tail = struct.pack(OPTIONS_FORMAT, priority, max_attempts, keep, 0)
          end
        end
        if not ended then
          clock = clock + 1
          if now > clock then
            clock = now
          end
          attempts = attempt + 1
          fresh = struct.pack(RECORD_FORMAT, 1, options, attempts, clock, created) .. tail
        end
      end
    elseif not ended then
      clock = clock + 1
      if now > clock then
        clock = now
      end
      -- its place without the level: an item whose record was lost may have had a priority
      local since = (heads[2 * i] or call('ZSCORE', ready, id)) % PRIORITY_STEP + EPOCH_2025_US
      fresh = struct.pack(RECORD_FORMAT, 1, 0, 1, clock, since)
    end
    if ended then
      ended[#ended + 1] = id
    else
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
    end
  end
  if #extra_fields > 0 then
    for i, packed in ipairs(call('HMGET', meta, unpack(extra_fields))) do
      if packed then
        decode_extra(packed, extra_of[i], more)
      end
    end
  end
  if #gone + #expired + #lapsed > 0 then
    -- Ids without data are damage: dropped and counted, as deep_clean does; and items that expired before they were ever
    -- leased. These keys are read here, since only they lead to them, and counted in before anything moves, since a
    -- counter may be damaged too.
    call('HLEN', counters)
    call('ZCARD', delayed)
    call('ZCARD', expiry)
    call('ZCARD', dead)
    allow_writes_when_full(ready)
    if #gone > 0 then
      increment_counter(counters, 'dropped', #gone)
    end
    --#part expire
  elseif #unexpired > 0 then
    call('ZCARD', expiry)
  end
  taken[3] = k
  changed = true
  call('ZREM', ready, unpack(ids))
  if k > 0 then
    taken[2] = deadline
    call('ZADD', leased, unpack(deadlines))
    if k >= 16 then
      -- The server keeps a small hash as a list, where it takes 3 us to find one of 256 records. A value of more than 64
      -- bytes makes it a table, which it stays until it is empty.
      new_records[2 * k + 1], new_records[2 * k + 2] = '', string.rep(' ', 65)
      call('HSET', meta, unpack(new_records))
      call('HDEL', meta, '')
    else
      call('HSET', meta, unpack(new_records))
    end
    leases = leases + k
    next_due = math.min(next_due, deadline)
  end
  if #unexpired > 0 then
    call('ZREM', expiry, unpack(unexpired))
  end
  for _, id in ipairs(gone) do
    call('HDEL', meta, id, '\0' .. id)
    call('ZREM', expiry, id)
  end
  for i = 1, #more do
    taken[#taken + 1] = more[i]
  end
end
