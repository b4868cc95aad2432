-- Behind lease_one, once the item has moved and `deadline` is set: its record, the state, and who is woken.
call('HSET', meta, id, fresh)
clock = token
if deadline < next_due then
  next_due = deadline
end
leases = leases + 1
save_state(state, flags, clock, next_due, largest, added, leases, limits)
if asleep and (next_due <= now + WAIT_CAP_US or call('ZCARD', ready) > 0) then
  call('LPUSH', wake, '1')
end
signal_room(tell_room, max_items, items, dead, ready, room)
