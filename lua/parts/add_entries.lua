-- Expects `now`. Adds entries, whose places in ARGV are `first` and whose options `options`, to a queue: a table of its keys and
-- of what its state holds. Leaves the new state there, and in `nearer` whether a time came nearer. Not behind `max_items` of
-- the queue, unless that is 0. Answers an array.
local function add_entries(queue, entries, first, options, max_items)
  local items, next_due = queue.items, queue.next_due
  local clock, added, largest, soonest = queue.clock, queue.added, queue.largest, next_due
  local answers, places, dues, records, expiries, ids, keeping = {}, {}, {}, {}, {}, {}, false
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
      ids[#ids + 1] = id
      held = held and held + 1
      if #data > largest then
        largest = #data
      end
      local place = clock - EPOCH_2025_US
      if option then
        local due, priority, max_attempts, bits = option.due, option.priority, option.max_attempts, option.bits
        local expires, keep, extra = option.expires, option.keep, option.extra
        if due then
          local n = #dues
          dues[n + 1], dues[n + 2] = due, id
          soonest = math.min(soonest, due)
          place = nil
        else
          place = place - priority * PRIORITY_STEP
        end
        --#part new_record
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
      if place then
        local n = #places
        places[n + 1], places[n + 2] = place, id
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
  queue.clock, queue.added, queue.largest, queue.next_due = clock, added + #ids, largest, soonest
  queue.changed = queue.changed or #ids > 0
  queue.nearer = queue.nearer or soonest < next_due or #ids > 0 and next_due == 0
  return answers
end
