-- The first write is a ZREM: allowed when the server is out of memory.
if #due > 0 then
  call('ZREM', delayed, unpack(due))
  call('HINCRBY', counters, 'promoted', #due)
end
if #late > 0 then
  call('ZREM', leased, unpack(late))
end
if #places > 0 then
  call('ZADD', ready, unpack(places))
end
local reclaimed = #late - #deaths / 2
if reclaimed > 0 then
  call('HINCRBY', counters, 'reclaimed', reclaimed)
end
if #deaths > 0 then
  call('ZADD', dead, unpack(deaths))
  call('HINCRBY', counters, 'died', #deaths / 2)
end
--#part next_due
