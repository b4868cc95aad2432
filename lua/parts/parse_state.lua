-- 44 bytes, the longest string the server embeds: format, flags (1 paused, 2 outcomes are kept), clock, next_due, largest,
-- added, leases, limits (max_data, max_items, max_attempts).
local blob = call('GET', state)
local format, flags, clock, next_due, largest, added, leases, limits
if blob then
  if #blob ~= 44 then
    error('LEASEQ_FORMAT the state of this queue has an unknown format: upgrade this client', 0)
  end
  format, flags, clock, next_due, largest, added, leases, limits = struct.unpack('<BBddI4I6I6c10', blob)
  if format ~= 1 or flags > 3 then
    error('LEASEQ_FORMAT the state of this queue has an unknown format or flag: upgrade this client', 0)
  end
else
  -- A new queue; or one whose state was lost: next_due 0 means that the bound is unknown, so that the next lease looks
  -- for itself, and items of unknown size are measured before they are read.
  added = call('HLEN', items)
  flags, clock, next_due, largest, leases, limits = 0, 0, 9007199254740992, 0, 0, '\0\0\0\0\0\0\0\0\0\0'
  if added > 0 then
    next_due, largest = 0, 4294967295
  end
end
