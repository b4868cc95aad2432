-- Behind lease_one, once the item has moved and `deadline` is set: its record, the state, and who is woken.
call('HSET', meta, id, fresh)
clock = token
if deadline < next_due then
  next_due = deadline
end
leases = leases + 1
--#part write_state
if asleep and (next_due <= now + 4000000 or call('ZCARD', ready) > 0) then
  call('LPUSH', wake, '1')
end
--#part room_tell
