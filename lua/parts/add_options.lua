-- Expects `now`. Reads one entry of add from ARGV: its id is checked. Answers the place behind the entry and its options: `due`
-- where that is ahead, the `bits` of its record, 0 where it needs none, numbers that are 0 where they are not said, and an extra.
local function entry_options(at, max_data)
  local id, data, count = ARGV[at] or '', ARGV[at + 1] or '', ARGV[at + 2]
  check_id(id)
  if #data > max_data then
    error('LEASEQ_TOO_LARGE the data of an item is longer than this queue takes: ' .. max_data .. ' bytes', 0)
  end
  at = at + 3
  if count == '0' then
    return at, nil, 0, 0, 0, 0, 0
  end
  local due, priority, max_attempts, expires, dies, keep, extra
  local first, headers, size = at, 0, 0
  for _ = 1, parse_integer(count, 0, 24, 'the number of options') do
    local name, value = ARGV[at] or '', ARGV[at + 1] or ''
    if name == 'delay' and not due then
      due = now + parse_integer(value, 0, MAX_SPAN_MS, 'delay') * 1000
    elseif name == 'not_before' and not due then
      due = parse_integer(value, 0, LATEST_TIME_MS, 'not_before') * 1000
    elseif name == 'priority' and not priority then
      if not string.find(value, '^-?[0-7]$') then
        error('LEASEQ_BAD_ARGUMENT priority must be a whole number in -7..7', 0)
      end
      priority = tonumber(value)
    elseif name == 'max_attempts' and not max_attempts then
      max_attempts = parse_integer(value, 0, 65534, 'max_attempts')
      if max_attempts == 0 then
        max_attempts = 65535
      end
    elseif name == 'expires_in' and not expires then
      expires = now + parse_integer(value, 1, MAX_SPAN_MS, 'expires_in') * 1000
    elseif name == 'expires_to' and value == 'dead' and not dies then
      dies = true
    elseif name == 'keep' and not keep then
      keep = parse_integer(value, 1, MAX_SPAN_MS, 'keep')
    elseif name == 'content_type' or string.sub(name, 1, 7) == 'header:' then
      for before = first, at - 2, 2 do
        if ARGV[before] == name then
          error('LEASEQ_BAD_ARGUMENT a header or the content type of an item is given twice', 0)
        end
      end
      headers = headers + (name == 'content_type' and 0 or 1)
      if name ~= 'content_type' and (not string.find(name, '^header:[%w_.-]+$') or #name > 107 or headers > 16) then
        error('LEASEQ_BAD_ARGUMENT an item has at most 16 headers, whose names are 1..100 of the characters A-Z a-z 0-9 _ . -', 0)
      end
      size = size + #name + #value
      if size > 4096 then
        error('LEASEQ_TOO_LARGE the headers and content type of an item are longer than 4096 bytes together', 0)
      end
      extra = (extra or '\0\0') .. struct.pack('<I2c0I2c0', #name, name, #value, value)
    else
      error(
        'LEASEQ_BAD_ARGUMENT add takes delay or not_before, priority, max_attempts, expires_in, expires_to (dead), keep, content_type'
          .. ' and header:NAME, once each',
        0
      )
    end
    at = at + 2
  end
  due = due or now
  if due >= LATEST_TIME_US then
    error('LEASEQ_BAD_ARGUMENT an item cannot become due after 2059', 0)
  end
  if dies and not expires then
    error('LEASEQ_BAD_ARGUMENT an item can only die when it expires (expires_to) where it expires (expires_in)', 0)
  end
  if expires and (expires <= due or expires >= LATEST_TIME_US) then
    error('LEASEQ_BAD_ARGUMENT an item can expire only after it is due and before 2060', 0)
  end
  priority = priority or 0
  local bits = 0
  if priority ~= 0 or max_attempts or keep or expires or extra then
    bits = 1 + (extra and 2 or 0) + (dies and 4 or 0)
  end
  return at, due > now and due, bits, priority, max_attempts or 0, expires or 0, keep or 0, extra
end
