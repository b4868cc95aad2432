-- Expects `packed`, an extra, `k`, the number of its item, and `more`, where (k, name, value) go. Damage ends the list.
local from = #packed > 1 and 3 + struct.unpack('<I2', packed) or #packed
while from + 3 <= #packed do
  local name_size = struct.unpack('<I2', packed, from)
  if from + 3 + name_size > #packed then
    break
  end
  local value_from = from + 4 + name_size
  local value_to = value_from - 1 + struct.unpack('<I2', packed, value_from - 2)
  more[#more + 1] = k
  more[#more + 1] = string.sub(packed, from + 2, value_from - 3)
  more[#more + 1] = string.sub(packed, value_from, value_to)
  from = value_to + 1
end
