-- Expects what unpack_record leaves; leaves the options of an item: priority, max_attempts, keep, expires.
local priority, max_attempts, keep, expires = 0, 0, 0, 0
if options ~= 0 then
  priority, max_attempts, keep, expires = struct.unpack('<bI2I6d', record, 23)
end
