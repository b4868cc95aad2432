-- Whether producers may be waiting for room and nobody has told them; costs nothing where the queue has no limit.
local max_items = limits == '\0\0\0\0\0\0\0\0\0\0' and 0 or struct.unpack('<I4', limits, 5)
local tell_room = max_items > 0 and call('LLEN', room) == 0
if tell_room then
  call('HLEN', items)
  call('ZCARD', dead)
end
