-- Settles, and says when something becomes leasable if nothing was. A lease that changed nothing never wakes anybody:
-- blocked workers would wake each other for ever.
local left = not paused and call('ZCARD', ready) > 0
if taken[3] == 0 and not left then
  --#part next_due
  taken[1] = next_due < 9007199254740992 and math.max(0, next_due - now) or -1
  if next_due ~= bound_read and not changed then
    -- The bound kept must be what this waiter is told: a nearer timer is only announced when it is nearer than that.
    call('ZREM', ready, '')
    --#part write_state
  end
end
if changed then
  --#part write_state
  if asleep and (left or taken[3] > 0 and next_due <= now + 4000000) then
    call('LPUSH', wake, '1')
  end
end
for _, id in ipairs(died_kept) do
  taken[#taken + 1] = 0
  taken[#taken + 1] = 'died'
  taken[#taken + 1] = id
end
--#part room_tell
