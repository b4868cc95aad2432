-- The counters first, after a no-op that the server allows when out of memory: a counter that is no number (damage)
-- must not stop the script between two states of an item.
local reclaimed = #late - #deaths / 2
if #due + #late > 0 then
  allow_writes_when_full(leased)
end
if #due > 0 then
  increment_counter(counters, 'promoted', #due)
end
if reclaimed > 0 then
  increment_counter(counters, 'reclaimed', reclaimed)
end
if #deaths > 0 then
  increment_counter(counters, 'died', #deaths / 2)
end
if #due > 0 then
  call('ZREM', delayed, unpack(due))
end
if #late > 0 then
  call('ZREM', leased, unpack(late))
end
if #places > 0 then
  call('ZADD', ready, unpack(places))
end
if #deaths > 0 then
  call('ZADD', dead, unpack(deaths))
end
next_due = read_next_due(delayed, leased)
