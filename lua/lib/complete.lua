-- Completion: an item leaves for good, for the first call with a token that it has had.

-- Takes the keys of the states and an id. Removes the id from the state that it is in. A ZREM that finds nothing changes nothing, so
-- an error of the next one (a key of another type) leaves everything as it was.
--#inline
local function leave_state(leased, ready, delayed, dead, id)
  if call('ZREM', leased, id) == 0 and call('ZREM', ready, id) == 0 and call('ZREM', delayed, id) == 0 then
    call('ZREM', dead, id)
  end
end

-- Takes the keys, an id and the options of its record. Deletes the data, the record and the extra of the item.
--#inline
local function delete_item(items, meta, id, options)
  call('HDEL', items, id)
  if has_extra(options) then
    call('HDEL', meta, id, '\0' .. id)
  else
    call('HDEL', meta, id)
  end
end

-- Takes the arguments of the call and the place of the number of entries, which are the last. Gives ids, tokens, and true for
-- each that only the current lease may complete.
local function parse_completions(argv, at)
  local entries = parse_integer(argv[at], 1, MAX_ENTRIES, 'the number of entries')
  at = at + 1
  local ids, tokens, only_current = {}, {}, {}
  for i = 1, entries do
    local token = parse_token(argv[at + 1] or '')
    ids[i], tokens[i] = argv[at], token
    local options = argv[at + 2]
    at = at + 3
    if options ~= '0' and parse_integer(options, 0, 1, 'the number of options') == 1 then
      if argv[at] ~= 'only_current' or argv[at + 1] ~= '1' then
        error('LEASEQ_BAD_ARGUMENT complete knows the option only_current with the value 1', 0)
      end
      only_current[i] = true
      at = at + 2
    end
  end
  check_argument_count(argv, at)
  return ids, tokens, only_current
end

-- Takes the keys of a queue and what parse_completions gives; writes nothing. Gives 1 or 0 for each entry, the ids that are
-- completed, and the fields of their extras. An id that is there twice is completed twice until write_completions corrects it.
local function plan_completions(queue, ids, tokens, only_current)
  local leased = queue.leased
  local answers, completed, count, extras = {}, {}, 0, {}
  local records = call('HMGET', queue.meta, unpack(ids))
  -- A key of another type fails here, before the first write.
  call('HLEN', queue.items)
  call('ZCARD', leased)
  call('ZCARD', queue.ready)
  call('ZCARD', queue.delayed)
  call('ZCARD', queue.dead)
  for i = 1, #ids do
    local id, record, token = ids[i], records[i], tokens[i]
    answers[i] = 0
    -- NUL and an id are the name of an extra
    if record and string.byte(id) ~= 0 then
      local options, _, latest_token, created = decode_record(record)
      if
        token > created
        and token <= latest_token
        and (not only_current[i] or token == latest_token and call('ZSCORE', leased, id))
      then
        count = count + 1
        completed[count] = id
        answers[i] = 1
        if has_extra(options) then
          extras[#extras + 1] = '\0' .. id
        end
      end
    else
      check_id(id)
    end
  end
  return answers, completed, extras
end

-- Takes the keys of a queue, the ids of all entries and what plan_completions gives; corrects the answers. Gives whether some
-- were not leased: requeued, delayed or dead when their old lease completed them after all, or twice in the call, where the
-- first one counts.
local function write_completions(queue, ids, answers, completed, extras)
  local not_leased = false
  if #completed > 0 then
    not_leased = call('ZREM', queue.leased, unpack(completed)) < #completed
    if not_leased then
      call('ZREM', queue.ready, unpack(completed))
      call('ZREM', queue.delayed, unpack(completed))
      call('ZREM', queue.dead, unpack(completed))
      local seen = {}
      for i = 1, #ids do
        if answers[i] == 1 then
          answers[i] = seen[ids[i]] or 1
          seen[ids[i]] = 0
        end
      end
    end
    call('HDEL', queue.items, unpack(completed))
    call('HDEL', queue.meta, unpack(completed))
    if #extras > 0 then
      call('HDEL', queue.meta, unpack(extras))
    end
  end
  return not_leased
end
