-- Adding: entries of add, their options, and how they get into a queue.

-- Takes the arguments of the call, the place of an entry and the queue's limit of data; checks its id and data.
--#inline
local function check_entry(argv, at, max_data)
  local id, data = argv[at] or '', argv[at + 1] or ''
  check_id(id)
  if #data > max_data then
    error('LEASEQ_TOO_LARGE the data of an item is longer than this queue takes: ' .. max_data .. ' bytes', 0)
  end
end

-- Takes the arguments of the call, the place of the number of an entry's options, and the server's time. Gives the place behind the
-- options, and nil where it has none, else: `due` where that is ahead, the `bits` of its record (0: it needs no options there), numbers
-- that are 0 where they are not given, and an `extra`.
local function parse_options(argv, at, now)
  local count = argv[at]
  at = at + 1
  if count == '0' then
    return at, nil
  end
  local due, priority, max_attempts, expires, to_dead, keep, extra
  local first, headers, size = at, 0, 0
  for _ = 1, parse_integer(count, 0, 24, 'the number of options') do
    local name, value = argv[at] or '', argv[at + 1] or ''
    if name == 'delay' and not due then
      due = now + parse_integer(value, 0, MAX_SPAN_MS, 'delay') * 1000
    elseif name == 'not_before' and not due then
      due = parse_integer(value, 0, LATEST_TIME_MS, 'not_before') * 1000
    elseif name == 'priority' and not priority then
      if not string.find(value, '^-?[0-7]$') then
        error('LEASEQ_BAD_ARGUMENT priority must be a whole number in -7..7', 0)
      end
      priority = tonumber(value)
    elseif name == 'max_attempts' and not max_attempts then
      max_attempts = parse_integer(value, 0, UNLIMITED_ATTEMPTS - 1, 'max_attempts')
      if max_attempts == 0 then
        max_attempts = UNLIMITED_ATTEMPTS
      end
    elseif name == 'expires_in' and not expires then
      expires = now + parse_integer(value, 1, MAX_SPAN_MS, 'expires_in') * 1000
    elseif name == 'expires_to' and value == 'dead' and not to_dead then
      to_dead = true
    elseif name == 'keep' and not keep then
      keep = parse_integer(value, 1, MAX_SPAN_MS, 'keep')
    elseif name == 'content_type' or string.sub(name, 1, 7) == 'header:' then
      for before = first, at - 2, 2 do
        if argv[before] == name then
          error('LEASEQ_BAD_ARGUMENT a header or the content type of an item is given twice', 0)
        end
      end
      headers = headers + (name == 'content_type' and 0 or 1)
      if
        name ~= 'content_type'
        and (not string.find(name, '^header:[%w_.-]+$') or #name > MAX_HEADER_NAME_BYTES or headers > MAX_HEADERS)
      then
        error('LEASEQ_BAD_ARGUMENT an item has at most 16 headers, whose names are 1..100 of the characters A-Z a-z 0-9 _ . -', 0)
      end
      size = size + #name + #value
      if size > MAX_EXTRA_BYTES then
        error('LEASEQ_TOO_LARGE the headers and content type of an item are longer than 4096 bytes together', 0)
      end
      extra = (extra or '\0\0') .. struct.pack('<I2c0I2c0', #name, name, #value, value)
    else
      error(
        'LEASEQ_BAD_ARGUMENT add takes delay or not_before, priority, max_attempts, expires_in, expires_to (dead), keep, content_type'
          .. ' and header:NAME, once each',
        0
      )
    end
    at = at + 2
  end
  due = due or now
  if due >= LATEST_TIME_US then
    error('LEASEQ_BAD_ARGUMENT an item cannot become due after 2059', 0)
  end
  if to_dead and not expires then
    error('LEASEQ_BAD_ARGUMENT an item can only die when it expires (expires_to) where it expires (expires_in)', 0)
  end
  if expires and (expires <= due or expires >= LATEST_TIME_US) then
    error('LEASEQ_BAD_ARGUMENT an item can expire only after it is due and before 2060', 0)
  end
  priority = priority or 0
  local bits = 0
  if priority ~= 0 or max_attempts or keep or expires or extra then
    bits = HAS_OPTIONS + (extra and HAS_EXTRA or 0) + (to_dead and DIES_ON_EXPIRY or 0)
  end
  if bits == 0 and due <= now then
    return at, nil
  end
  return at,
    {
      due = due > now and due, bits = bits, priority = priority, max_attempts = max_attempts or 0,
      expires = expires or 0, keep = keep or 0, extra = extra,
    }
end

-- Takes the arguments of the call and two places. Gives whether `count` arguments from there on are the same.
local function same_arguments(argv, one, other, count)
  for i = 0, count - 1 do
    if argv[one + i] ~= argv[other + i] then
      return false
    end
  end
  return true
end

-- Takes the time of creation and what parse_options gives. Gives the record of a new item, nil where it needs none.
--#inline
local function new_item_record(created, due, bits, priority, max_attempts, expires, keep)
  local record
  if bits > 0 then
    record = struct.pack(RECORD_WITH_OPTIONS_FORMAT, FORMAT_VERSION, bits, 0, 0, created, priority, max_attempts, keep, expires)
  elseif due then
    record = encode_record(0, 0, 0, created)
  end
  return record
end

-- Takes a queue, the server's time, the arguments of the call, the places of entries in them, their options, how many items the queue
-- holds at most (0: no limit), and, of a queue without limit, the data that is stored under each id, nil to ask for each; the
-- entries were checked. Leaves the new state in `queue`, in its `changed` whether an
-- item came, and in `due_sooner` whether a time came due_sooner. Gives for each entry created, 0 or -1.
local function insert_entries(queue, now, argv, places, options, max_items, stored)
  local items, next_due = queue.items, queue.next_due
  local clock, added, largest, soonest = queue.clock, queue.added, queue.largest, next_due
  local answers, scores, dues, records, expiries, ids, keeping = {}, {}, {}, {}, {}, {}, false
  local fields, taken = {}, {}
  local held = max_items > 0 and call('HLEN', items) - call('ZCARD', queue.dead)
  for i, place in ipairs(places) do
    local id, data, option = argv[place], argv[place + 1], options[i]
    answers[i] = 0
    if held and held >= max_items then
      answers[i] = call('HEXISTS', items, id) - 1
    elseif stored and not (stored[i] or taken[id]) or not stored and call('HSETNX', items, id, data) == 1 then
      if stored then
        local n = #fields
        fields[n + 1], fields[n + 2], taken[id] = id, data, true
      end
      clock = next_token(clock, now)
      answers[i] = clock
      ids[#ids + 1] = id
      held = held and held + 1
      if #data > largest then
        largest = #data
      end
      local due, priority = nil, 0
      if option then
        due, priority = option.due, option.priority
        local extra, expires, keep = option.extra, option.expires, option.keep
        local record = new_item_record(clock, due, option.bits, priority, option.max_attempts, expires, keep)
        if record then
          local n = #records
          records[n + 1], records[n + 2] = id, record
          if extra then
            records[n + 3], records[n + 4] = '\0' .. id, extra
          end
        end
        if expires > 0 then
          local n = #expiries
          expiries[n + 1], expiries[n + 2] = expires, id
        end
        keeping = keeping or keep > 0
      end
      if due then
        local n = #dues
        dues[n + 1], dues[n + 2] = due, id
        soonest = math.min(soonest, due)
      else
        local n = #scores
        local score = ready_score(clock, priority)
        scores[n + 1], scores[n + 2] = score, id
      end
    end
  end
  if #fields > 0 then
    call('HSET', items, unpack(fields))
  end
  if #scores > 0 then
    call('ZADD', queue.ready, unpack(scores))
  end
  if #dues > 0 then
    call('ZADD', queue.delayed, unpack(dues))
  end
  if #records > 0 then
    call('HSET', queue.meta, unpack(records))
  end
  if #expiries > 0 then
    call('ZADD', queue.expiry, unpack(expiries))
  end
  if keeps_outcomes(queue.flags) and #ids > 0 then
    -- outcomes of earlier items of these ids
    call('ZREM', queue.kept, unpack(ids))
  elseif keeping then
    queue.flags = queue.flags + KEEPS_OUTCOMES
  end
  queue.clock, queue.added, queue.largest, queue.next_due = clock, added + #ids, largest, soonest
  queue.changed = queue.changed or #ids > 0
  queue.due_sooner = queue.due_sooner or soonest < next_due or #ids > 0 and next_due == 0
  return answers
end

-- Takes the arguments of the call, the number of entries and the queue's limit of data. Gives the ids where the entries are plain: no
-- options, and ids of ASCII; nil for anything else, right or wrong.
local function parse_plain_entries(argv, entries, max_data)
  if #argv ~= 3 * entries + 1 then
    return nil
  end
  local ids = {}
  for i = 1, entries do
    local id = argv[3 * i - 1]
    ids[i] = id
    if #id > MAX_ID_BYTES or id == '' or #argv[3 * i] > max_data or argv[3 * i + 1] ~= '0' then
      return nil
    end
  end
  return string.find(table.concat(ids), '^[\1-\127]+$') and ids
end

-- The hot path of a batch: takes a queue that has no limit and keeps no outcomes, the server's time, the arguments of the call and
-- the ids of plain entries. Does the same as insert_entries, unless an id is there twice: then it leaves nothing behind, and
-- gives nil. Which ids exist is found by their data, in one command: not where that may be much.
local function insert_plain_entries(queue, now, argv, ids)
  local items, ready = queue.items, queue.ready
  local clock, largest = queue.clock, queue.largest
  local answers, scores, fields, n = {}, {}, {}, 0
  -- A key of another type fails here, before the first write.
  call('ZCARD', ready)
  local stored = call('HMGET', items, unpack(ids))
  for i, id in ipairs(ids) do
    if stored[i] then
      answers[i] = 0
    else
      local data = argv[3 * i]
      clock = next_token(clock, now)
      local score = ready_score(clock, 0)
      answers[i] = clock
      if #data > largest then
        largest = #data
      end
      scores[n + 1], scores[n + 2] = score, id
      fields[n + 1], fields[n + 2] = id, data
      n = n + 2
    end
  end
  if n > 0 then
    if call('HSET', items, unpack(fields)) ~= n / 2 then
      for i = 1, n, 2 do
        call('HDEL', items, fields[i])
      end
      return nil
    end
    call('ZADD', ready, unpack(scores))
    queue.clock, queue.largest, queue.added = clock, largest, queue.added + n / 2
    queue.changed, queue.due_sooner = true, queue.next_due == 0
  end
  return answers
end

-- Takes a queue, the server's time, the arguments of the call, the number of entries, and the queue's limits of data and of items.
-- Leaves in `queue` what insert_entries leaves. Gives for each entry created, 0 or -1.
local function add_batch(queue, now, argv, entries, max_data, max_items)
  if not keeps_outcomes(queue.flags) and max_items == 0 and entries * queue.largest <= MAX_BATCH_BYTES then
    local ids = parse_plain_entries(argv, entries, max_data)
    local answers = ids and insert_plain_entries(queue, now, argv, ids)
    if answers then
      return answers
    end
  end
  local places, ids, options, at, optional = {}, {}, {}, 2, false
  local parsed, words = 0, 0
  for i = 1, entries do
    places[i], ids[i] = at, argv[at]
    check_entry(argv, at, max_data)
    at = at + 2
    if words > 0 and same_arguments(argv, at, parsed, words) then
      -- as in the entry before: options cost more to read than to compare
      at, options[i] = at + words, options[i - 1]
    else
      parsed = at
      at, options[i] = parse_options(argv, at, now)
      words = at - parsed
    end
    optional = optional or options[i]
  end
  check_argument_count(argv, at)
  -- of another type, a key that may be written is found here
  call('ZCARD', queue.ready)
  if optional then
    -- A key of another type fails here, before the first write.
    call('HLEN', queue.meta)
    call('ZCARD', queue.delayed)
    call('ZCARD', queue.expiry)
  end
  if keeps_outcomes(queue.flags) then
    -- A key of another type fails here, before the first write.
    call('ZCARD', queue.kept)
  end
  -- Which ids exist is found by their data, in one command: not where that may be much.
  local stored
  if max_items == 0 and entries * queue.largest <= MAX_BATCH_BYTES then
    stored = call('HMGET', queue.items, unpack(ids))
  end
  return insert_entries(queue, now, argv, places, options, max_items, stored)
end

-- Takes a queue that insert_entries has changed. Saves its state, and wakes a worker where something became leasable or a time came
-- due_sooner, and none was woken yet.
local function finish_add(queue)
  save_queue(queue)
  if
    queue.changed
    and queue.no_wake_pending
    and (queue.due_sooner or not is_paused(queue.flags) and call('ZCARD', queue.ready) > 0)
  then
    call('LPUSH', queue.wake, '1')
  end
end
