-- Expects what add_several has read: entries without options, for a queue that has no limit and keeps no outcomes. Does the
-- same as add_entries. The ids that exist are found by their data, in one command: not where that may be much.
local places, fields, new, n = {}, {}, {}, 0
answers = {}
for i, data in ipairs(call('HMGET', items, unpack(ids))) do
  local id = ids[i]
  answers[i] = 0
  if not data and not new[id] then
    new[id], data = true, ARGV[first[i] + 1]
    clock = clock + 1
    if now > clock then
      clock = now
    end
    answers[i] = clock
    if #data > largest then
      largest = #data
    end
    places[n + 1], places[n + 2] = clock - 1735689600000000, id
    fields[n + 1], fields[n + 2] = id, data
    n = n + 2
  end
end
if n > 0 then
  call('HSET', items, unpack(fields))
  call('ZADD', ready, unpack(places))
  queue.clock, queue.largest, queue.added = clock, largest, added + n / 2
  queue.changed, queue.nearer = true, next_due == 0
end
