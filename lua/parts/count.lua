-- Counts. A counter that is no number (damage) begins anew and must not stop the script between two states of an item.
local function count_up(name, by)
  if type(redis.pcall('HINCRBY', counters, name, by)) == 'table' then
    call('HSET', counters, name, by)
  end
end
