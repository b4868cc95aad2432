-- Expects `clock` and what entry_options answers of an entry. Leaves `record`, nil where the item needs none.
local record
if bits > 0 then
  record = struct.pack(RECORD_WITH_OPTIONS_FORMAT, 1, bits, 0, 0, clock, priority, max_attempts, keep, expires)
elseif due then
  record = struct.pack(RECORD_FORMAT, 1, 0, 0, 0, clock)
end
