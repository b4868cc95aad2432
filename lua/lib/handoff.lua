-- The hand-off of complete_with: entries are completed, their results kept, and follow-up items go to other queues of the group.

-- Takes the queues that are open, a list that also has each under its key `state`, and the keys of one. Gives the queue: its keys,
-- its state, and its limit of data. A queue that is named twice is opened once: its state is read once and written once.
local function open_queue(queues, keys)
  local queue = queues[keys.state]
  if not queue then
    local stored, flags, clock, next_due, largest, added, leases, limits = load_state(keys.state, keys.items)
    if not stored and call('ZCARD', keys.kept) > 0 then
      flags = KEEPS_OUTCOMES
    end
    queue = keys
    queue.flags, queue.clock, queue.next_due, queue.largest, queue.added = flags, clock, next_due, largest, added
    queue.leases, queue.limits, queue.flags_read = leases, limits, flags
    queue.max_data = struct.unpack('<I4', limits)
    queue.max_data = queue.max_data > 0 and queue.max_data or DEFAULT_MAX_DATA
    queues[keys.state] = queue
    queues[#queues + 1] = queue
  end
  return queue
end

-- Takes the open queues, the number of targets and the keys that start with theirs, nine for each. Gives the target queues.
local function open_target_queues(queues, targets, all_keys)
  local target_queues = {}
  for number = 1, targets do
    local k = KEYS_PER_TARGET * (number - 1) + 1
    local keys = {
      items = all_keys[k], meta = all_keys[k + 1], ready = all_keys[k + 2], delayed = all_keys[k + 3],
      dead = all_keys[k + 4], expiry = all_keys[k + 5], kept = all_keys[k + 6], state = all_keys[k + 7],
      wake = all_keys[k + 8],
    }
    if not keys.wake then
      error('LEASEQ_BAD_ARGUMENT complete_with takes nine keys for each target', 0)
    end
    local queue = open_queue(queues, keys)
    for name, key in pairs(keys) do
      queue[name] = key
    end
    queue.no_wake_pending = call('LLEN', queue.wake) == 0
    -- A key of another type fails here, before the first write.
    call('HLEN', queue.items)
    call('HLEN', queue.meta)
    for _, zset in ipairs({queue.ready, queue.delayed, queue.dead, queue.expiry, queue.kept}) do
      -- A key of another type fails here, before the first write.
      call('ZCARD', zset)
    end
    target_queues[number] = queue
  end
  return target_queues
end

-- Takes the arguments of the call, the number of entries, the server's time, the limit of data of the source queue, the target
-- queues, and the keys result:<id>. Gives the entries: `id`, `token`, `only_current`, `keep` in ms, `result_key`, `content`,
-- and `follow_ups`, each a `queue`, a `place` in the arguments and `options`. Gives how many have a result key.
local function parse_handoffs(argv, entries, now, max_data, target_queues, result_keys)
  local handoffs, at, keeping, follow_ups = {}, 3, 0, 0
  for i = 1, entries do
    local id, token_text, entry = argv[at] or '', argv[at + 1] or '', {follow_ups = {}}
    check_id(id)
    local token = parse_token(token_text)
    entry.id, entry.token = id, token
    local count = parse_integer(argv[at + 2], 0, 3, 'the number of options')
    at = at + 3
    for _ = 1, count do
      local name, value = argv[at], argv[at + 1]
      if name == 'only_current' and value == '1' and not entry.only_current then
        entry.only_current = true
      elseif name == 'keep' and not entry.keep then
        entry.keep = parse_integer(value, 0, MAX_SPAN_MS, 'keep')
        keeping = keeping + 1
        local result_key = result_keys[keeping]
        check_result_key(result_key, id)
        entry.result_key = result_key
      elseif name == 'result' and value and not entry.content then
        entry.content = value
      else
        error('LEASEQ_BAD_ARGUMENT complete_with takes only_current (1), keep and result, once each', 0)
      end
      at = at + 2
    end
    if entry.content and not entry.keep then
      error('LEASEQ_BAD_ARGUMENT a result needs the option keep', 0)
    elseif entry.content and #entry.content > max_data then
      error('LEASEQ_TOO_LARGE the result is longer than the data of an item of this queue: ' .. max_data .. ' bytes', 0)
    end
    local following = parse_integer(argv[at], 0, MAX_FOLLOW_UPS, 'the number of follow-up items')
    follow_ups, at = follow_ups + following, at + 1
    if follow_ups > MAX_FOLLOW_UPS then
      error('LEASEQ_BAD_ARGUMENT one call takes 256 follow-up items', 0)
    end
    for f = 1, following do
      local queue = target_queues[parse_integer(argv[at], 1, math.max(1, #target_queues), 'target')]
      if not queue then
        error('LEASEQ_BAD_ARGUMENT a follow-up item needs a target', 0)
      end
      local place = at + 1
      check_entry(argv, place, queue.max_data)
      local next_arg, options = parse_options(argv, place + 2, now)
      entry.follow_ups[f] = {queue = queue, place = place, options = options}
      at = next_arg
    end
    handoffs[i] = entry
  end
  check_argument_count(argv, at)
  return handoffs, keeping
end

-- Takes the keys of the source queue, that queue, the server's time, an entry whose `record` was read and the ids that this call
-- has completed. Completes the item and keeps its result. Gives whether it did.
local function complete_entry(keys, source, now, entry, completed)
  local id, token, record = entry.id, entry.token, not completed[entry.id] and entry.record
  if not record then
    return false
  end
  local items, meta, leased, kept = keys.items, keys.meta, keys.leased, keys.kept
  local options, attempt, latest_token, created = decode_record(record)
  if
    token > created
    and token <= latest_token
    and (not entry.only_current or token == latest_token and call('ZSCORE', leased, id))
  then
    local _, _, keep, _ = decode_options(record, options)
    leave_state(leased, keys.ready, keys.delayed, keys.dead, id)
    completed[id] = true
    delete_item(items, meta, id, options)
    local ttl = entry.keep and (entry.keep > 0 and entry.keep or keep) or 0
    if ttl > 0 then
      if entry.has_result then
        call('DEL', entry.result_key)
      end
      local content = entry.content or ''
      store_outcome(call, kept, id, entry.result_key, now, ttl, RESULT, attempt, token, created, now, content)
      source.flags = with_outcomes_flag(source.flags)
    elseif keeps_outcomes(source.flags) then
      -- the failure of a dead item that is completed after all
      call('ZREM', kept, id)
    end
    return true
  end
  return false
end

-- Takes the key `kept` of the source queue and an entry. Gives whether the same lease completed the item before and this call says so once more:
-- its reply was lost.
local function was_completed_by(kept, entry)
  if not entry.keep then
    return false
  end
  local is_kept = call('ZSCORE', kept, entry.id)
  local outcome, kind, _, token, _, _ = load_outcome(entry.result_key, is_kept)
  return outcome and kind == RESULT and token == entry.token
end
