-- The last error in an extra.
local function error_in(packed)
  return packed and #packed > 1 and string.sub(packed, 3, 2 + struct.unpack('<I2', packed)) or ''
end
