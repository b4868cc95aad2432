-- Expects `record`; leaves version, options, attempt, current, created. Options: 0 none, else 1 for the tail, plus 2 where
-- there is an extra, plus 4 where the item dies when it expires.
if #record < 22 then
  error('LEASEQ_FORMAT the record of an item is damaged: run deep_clean', 0)
end
local version, options, attempt, current, created = struct.unpack('<BBI4dd', record)
if version ~= 1 or options ~= 0 or #record ~= 22 or not (created >= 0 and current >= 0) then
  if version ~= 1 or options > 7 or options > 0 and options % 2 == 0 then
    error('LEASEQ_FORMAT the record of an item has an unknown format or flag: upgrade this client', 0)
  elseif #record ~= (options == 0 and 22 or 39) or not (created >= 0 and current >= 0) then
    error('LEASEQ_FORMAT the record of an item is damaged: run deep_clean', 0)
  end
end
