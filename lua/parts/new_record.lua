-- Expects `option`, what an entry of add says, and `clock`. Leaves `record`, nil where the item needs none.
local record
if option.bits > 0 then
  record = struct.pack(
    '<BBI4ddbI2I6d', 1, option.bits, 0, 0, clock,
    option.priority, option.max_attempts, option.keep, option.expires
  )
elseif option.due then
  record = struct.pack('<BBI4dd', 1, 0, 0, 0, clock)
end
