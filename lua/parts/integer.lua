-- A whole number in low..high, or a named error. `tonumber` alone would take 0x10, 1e3 and nan.
local function integer(text, low, high, what)
  local number = text and #text <= 16 and string.find(text, '^[0-9]+$') and tonumber(text)
  if not number or number < low or number > high then
    error(string.format('LEASEQ_BAD_ARGUMENT %s must be a whole number in %.0f..%.0f', what, low, high), 0)
  end
  return number
end
