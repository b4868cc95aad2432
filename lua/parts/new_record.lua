-- Expects `clock` and what entry_options answers of an entry. Leaves `record`, nil where the item needs none.
local record
if bits > 0 then
  record = struct.pack('<BBI4ddbI2I6d', 1, bits, 0, 0, clock, priority, max_attempts, keep, expires)
elseif due then
  record = struct.pack('<BBI4dd', 1, 0, 0, 0, clock)
end
