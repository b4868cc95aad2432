-- Expects `record`; leaves version, options (1 when priority and max_attempts follow), attempt, current, created.
if #record < 22 then
  error('LEASEQ_FORMAT the record of an item is damaged: run deep_clean', 0)
end
local version, options, attempt, current, created = struct.unpack('<BBI4dd', record)
if version ~= 1 or options > 1 or #record ~= 22 + 3 * options then
  if version == 1 and options <= 1 then
    error('LEASEQ_FORMAT the record of an item is damaged: run deep_clean', 0)
  end
  error('LEASEQ_FORMAT the record of an item has an unknown format or flag: upgrade this client', 0)
end
