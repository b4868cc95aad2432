-- The extra of an item: its last error with the length before it, then name and value of the content type and of each header,
-- each with its length before it.

-- Takes an extra or false. Gives the last error in it.
local function last_error(extra)
  return extra and #extra > 1 and string.sub(extra, 3, 2 + struct.unpack('<I2', extra)) or ''
end

-- Takes an extra or false, and a text. Gives the extra with that as the last error.
local function set_last_error(extra, text)
  local rest = extra and #extra > 1 and string.sub(extra, 3 + struct.unpack('<I2', extra)) or ''
  return struct.pack('<I2c0', #text, text) .. rest
end

-- Takes an error text. Gives at most MAX_ERROR_BYTES of it, cut between two characters.
local function truncate_error(text)
  local last = MAX_ERROR_BYTES
  if #text <= last then
    return text
  end
  while last > MAX_ERROR_BYTES - 3 and string.find(text, '^[\128-\191]', last + 1) do
    last = last - 1
  end
  return string.sub(text, 1, last)
end

-- Takes an extra, the number of its item, and the list that (number, name, value) of the content type and the headers go to. Damage
-- ends the list.
local function decode_extra(extra, number, metadata)
  local from = #extra > 1 and 3 + struct.unpack('<I2', extra) or #extra
  while from + 3 <= #extra do
    local name_size = struct.unpack('<I2', extra, from)
    if from + 3 + name_size > #extra then
      break
    end
    local value_from = from + 4 + name_size
    local value_to = value_from - 1 + struct.unpack('<I2', extra, value_from - 2)
    metadata[#metadata + 1] = number
    metadata[#metadata + 1] = string.sub(extra, from + 2, value_from - 3)
    metadata[#metadata + 1] = string.sub(extra, value_from, value_to)
    from = value_to + 1
  end
end
