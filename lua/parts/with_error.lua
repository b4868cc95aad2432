-- An extra with another last error: the error with its length before it, then name and value of the content type and of
-- each header.
local function with_error(packed, text)
  local rest = packed and #packed > 1 and string.sub(packed, 3 + struct.unpack('<I2', packed)) or ''
  return struct.pack('<I2c0', #text, text) .. rest
end
