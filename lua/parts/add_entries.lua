-- Expects `now`. Adds entries, whose places in ARGV are `first` and whose options `options`, to a queue: a table of its keys and
-- of what its state holds. Leaves the new state there, and in `nearer` whether a time came nearer. Not behind `max_items` of
-- the queue, unless that is 0. Answers an array.
local function add_entries(queue, entries, first, options, max_items)
  local items, next_due = queue.items, queue.next_due
  local clock, added, largest, soonest = queue.clock, queue.added, queue.largest, next_due
  local answers, places, dues, records, expiries, keeping, ids = {}, {}, {}, {}, {}, false, {}
  local held = max_items > 0 and call('HLEN', items) - call('ZCARD', queue.dead)
  for i = 1, entries do
    local id, data, option = ARGV[first[i]], ARGV[first[i] + 1], options[i]
    answers[i] = 0
    if held and held >= max_items then
      answers[i] = call('HEXISTS', items, id) - 1
    elseif call('HSETNX', items, id, data) == 1 then
      clock = clock + 1
      if now > clock then
        clock = now
      end
      answers[i] = clock
      added = added + 1
      ids[#ids + 1] = id
      held = held and held + 1
      if #data > largest then
        largest = #data
      end
      local place = clock - 1735689600000000
      if option then
        local priority, waits = option.priority or 0, option.due and option.due > now
        local max_attempts, keep, expires = option.max_attempts or 0, option.keep or 0, option.expires or 0
        if waits then
          dues[#dues + 1] = option.due
          dues[#dues + 1] = id
          soonest = math.min(soonest, option.due)
          place = nil
        else
          place = place - priority * 1125899906842624
        end
        local bits = 0
        if priority ~= 0 or max_attempts ~= 0 or keep ~= 0 or expires ~= 0 or option.extra then
          bits = 1 + (option.extra and 2 or 0) + (option.dies and 4 or 0)
        end
        if waits or bits > 0 then
          local record = struct.pack('<BBI4dd', 1, bits, 0, 0, clock)
          if bits > 0 then
            record = record .. struct.pack('<bI2I6d', priority, max_attempts, keep, expires)
          end
          records[#records + 1] = id
          records[#records + 1] = record
        end
        if option.extra then
          records[#records + 1] = '\0' .. id
          records[#records + 1] = option.extra
        end
        if expires > 0 then
          expiries[#expiries + 1] = expires
          expiries[#expiries + 1] = id
        end
        keeping = keeping or keep > 0
      end
      if place then
        places[#places + 1] = place
        places[#places + 1] = id
      end
    end
  end
  if #places > 0 then
    call('ZADD', queue.ready, unpack(places))
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
  if queue.flags >= 2 and #ids > 0 then
    -- outcomes of earlier items of these ids
    call('ZREM', queue.kept, unpack(ids))
  elseif keeping then
    queue.flags = queue.flags + 2
  end
  queue.clock, queue.added, queue.largest, queue.next_due = clock, added, largest, soonest
  queue.changed = queue.changed or #ids > 0
  queue.nearer = queue.nearer or soonest < next_due or #ids > 0 and next_due == 0
  return answers
end
