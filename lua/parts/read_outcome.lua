-- Expects `result`, a key. Leaves `found`, whether a whole outcome is there, and what it says.
local packed = call('LINDEX', result, '0')
local found = packed and #packed >= 30 and string.byte(packed) == 1
local kind, attempt, token, created, ended
if found then
  kind, attempt, token, created, ended = struct.unpack('<BI4ddd', packed, 2)
end
