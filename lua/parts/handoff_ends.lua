-- How an entry ends: `won` completes its item and keeps its result, `repeated` finds that the same lease did so before.
local function keep_result(option, attempt, created, ttl)
  local id, token, content = option.id, option.token, option.content or ''
  if option.older then
    call('DEL', option.result)
  end
  store_outcome(call, kept, id, option.result, now, ttl, RESULT, attempt, token, created, now, content)
  source.flags = with_outcomes_flag(source.flags)
end
local ended = {}
local function won(option)
  local id, token, record = option.id, option.token, not ended[option.id] and option.record
  if record then
    local options, attempt, latest_token, created = decode_record(record)
    if
      token > created
      and token <= latest_token
      and (not option.only_current or token == latest_token and call('ZSCORE', leased, id))
    then
      local priority, max_attempts, keep, expires = decode_options(record, options)
      if call('ZREM', leased, id) == 0 and call('ZREM', ready, id) == 0 and call('ZREM', delayed, id) == 0 then
        call('ZREM', dead, id)
      end
      ended[id] = true
      call('HDEL', items, id)
      if options % 4 >= 2 then
        call('HDEL', meta, id, '\0' .. id)
      else
        call('HDEL', meta, id)
      end
      local ttl = option.keep and (option.keep > 0 and option.keep or keep) or 0
      if ttl > 0 then
        keep_result(option, attempt, created, ttl)
      elseif source.flags >= 2 then
        -- the failure of a dead item that is completed after all
        call('ZREM', kept, id)
      end
      return true
    end
  end
  return false
end
-- The lease that completed the item says so once more: its reply was lost.
local function repeated(option)
  if not option.keep then
    return false
  end
  local is_kept = call('ZSCORE', kept, option.id)
  local outcome, kind, _, token, _, _ = load_outcome(option.result, is_kept)
  return outcome and kind == 1 and token == option.token
end
