-- How an entry ends: `won` completes its item and keeps its result, `repeated` finds that the same lease did so before.
local function keep_result(option, attempt, created, ttl)
  local id, token, content, kind, ended, flags = option.id, option.token, option.content or '', 1, now, source.flags
  local change = call
  if option.older then
    call('DEL', option.result)
  end
  --#part keep_outcome
  source.flags = flags
end
local ended = {}
local function won(option)
  local id, token, record = option.id, option.token, not ended[option.id] and option.record
  if record then
    --#part unpack_record
    if
      token > created
      and token <= current
      and (not option.only_current or token == current and call('ZSCORE', leased, id))
    then
      --#part unpack_tail
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
  local result, counts = option.result, call('ZSCORE', kept, option.id)
  --#part read_outcome
  return found and kind == 1 and token == option.token
end
