-- Settles, and says when something becomes leasable if nothing was. A lease that changed nothing never wakes anybody:
-- blocked workers would wake each other for ever.
local left = not paused and call('ZCARD', ready) > 0
if taken[3] == 0 and not left then
  next_due = read_next_due(delayed, leased)
  taken[1] = next_due < NEVER and math.max(0, next_due - now) or -1
  if next_due ~= bound_read and not changed then
    -- The bound kept must be what this waiter is told: a nearer timer is only announced when it is nearer than that.
    allow_writes_when_full(ready)
    save_state(state, flags, clock, next_due, largest, added, leases, limits)
  end
end
if changed then
  save_state(state, flags, clock, next_due, largest, added, leases, limits)
  if asleep and (left or taken[3] > 0 and next_due <= now + WAIT_CAP_US) then
    call('LPUSH', wake, '1')
  end
end
for _, id in ipairs(died_kept) do
  taken[#taken + 1] = 0
  taken[#taken + 1] = 'died'
  taken[#taken + 1] = id
end
signal_room(tell_room, max_items, items, dead, ready, room)
