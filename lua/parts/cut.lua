-- An error text of at most 8192 bytes, cut between two characters.
local function cut(text)
  local last = 8192
  if #text <= last then
    return text
  end
  while last > 8189 and string.find(text, '^[\128-\191]', last + 1) do
    last = last - 1
  end
  return string.sub(text, 1, last)
end
