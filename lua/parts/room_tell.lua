-- Behind room_look, at the end: where there is room, one element, after a no-op that a full server allows.
if tell_room and call('HLEN', items) - call('ZCARD', dead) < max_items then
  call('ZREM', ready, '')
  call('LPUSH', room, '1')
end
