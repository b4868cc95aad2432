-- Expects `result`, a key, and `counts`, whether the id is in `kept`. Leaves `found`, whether an outcome counts, and what it says.
local packed = counts and call('LINDEX', result, '0')
local found = packed
local kind, attempt, token, created, ended
if found then
  local form = string.sub(packed, 1, 2)
  if #packed < 30 or form ~= '\1\1' and form ~= '\1\2' then
    error('LEASEQ_FORMAT the outcome of an item has an unknown format: upgrade this client', 0)
  end
  kind, attempt, token, created, ended = struct.unpack('<BI4ddd', packed, 2)
end
