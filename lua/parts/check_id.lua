-- Expects `id`; ASCII ids pay for one match, the rest are checked as UTF-8: every valid sequence becomes a space.
if #id > 256 or not string.find(id, '^[\1-\127]+$') then
  -- an id that is too long is refused unread: 40 MB of it took the server seconds
  local rest = string.gsub(string.sub(id, 1, 257), '[\194-\223][\128-\191]', ' ')
  rest = string.gsub(rest, '\224[\160-\191][\128-\191]', ' ')
  rest = string.gsub(rest, '[\225-\236\238\239][\128-\191][\128-\191]', ' ')
  rest = string.gsub(rest, '\237[\128-\159][\128-\191]', ' ')
  rest = string.gsub(rest, '\240[\144-\191][\128-\191][\128-\191]', ' ')
  rest = string.gsub(rest, '[\241-\243][\128-\191][\128-\191][\128-\191]', ' ')
  rest = string.gsub(rest, '\244[\128-\143][\128-\191][\128-\191]', ' ')
  if id == '' or #id > 256 or string.find(rest, '[%z\128-\255]') then
    error('LEASEQ_BAD_ID an id is 1..256 bytes of UTF-8 without NUL', 0)
  end
end
