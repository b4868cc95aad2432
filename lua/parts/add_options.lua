-- Expects `now`. Reads one entry of add from ARGV: its id is checked, its options are a table, or nil where it has none.
-- Answers the place behind the entry.
local function entry_options(at, max_data)
  local id, data, count = ARGV[at] or '', ARGV[at + 1] or '', ARGV[at + 2]
  --#part check_id
  if #data > max_data then
    error('LEASEQ_TOO_LARGE the data of an item is longer than this queue takes: ' .. max_data .. ' bytes', 0)
  end
  at = at + 3
  if count == '0' then
    return at, nil
  end
  local options, seen, headers, extra, size = {}, {}, 0, {}, 0
  for _ = 1, integer(count, 0, 24, 'the number of options') do
    local name, value = ARGV[at] or '', ARGV[at + 1] or ''
    if seen[name] then
      error('LEASEQ_BAD_ARGUMENT an option of add is given twice', 0)
    end
    seen[name] = true
    if name == 'delay' and not options.due then
      options.due = now + integer(value, 0, 315360000000, 'delay') * 1000
    elseif name == 'not_before' and not options.due then
      options.due = integer(value, 0, 2840140799999, 'not_before') * 1000
    elseif name == 'priority' then
      if not string.find(value, '^-?[0-7]$') then
        error('LEASEQ_BAD_ARGUMENT priority must be a whole number in -7..7', 0)
      end
      options.priority = tonumber(value)
    elseif name == 'max_attempts' then
      options.max_attempts = integer(value, 0, 65534, 'max_attempts')
      if options.max_attempts == 0 then
        options.max_attempts = 65535
      end
    elseif name == 'expires_in' then
      options.expires = now + integer(value, 1, 315360000000, 'expires_in') * 1000
    elseif name == 'expires_to' and value == 'dead' then
      options.dies = true
    elseif name == 'keep' then
      options.keep = integer(value, 1, 315360000000, 'keep')
    elseif name == 'content_type' or string.find(name, '^header:') then
      headers = headers + (name == 'content_type' and 0 or 1)
      if name ~= 'content_type' and (not string.find(name, '^header:[%w_.-]+$') or #name > 107 or headers > 16) then
        error('LEASEQ_BAD_ARGUMENT an item has at most 16 headers, whose names are 1..100 of the characters A-Z a-z 0-9 _ . -', 0)
      end
      size = size + #name + #value
      if size > 4096 then
        error('LEASEQ_TOO_LARGE the headers and content type of an item are longer than 4096 bytes together', 0)
      end
      extra[#extra + 1] = struct.pack('<I2c0I2c0', #name, name, #value, value)
    else
      error(
        'LEASEQ_BAD_ARGUMENT add takes delay or not_before, priority, max_attempts, expires_in, expires_to (dead), keep, content_type'
          .. ' and header:NAME, once each',
        0
      )
    end
    at = at + 2
  end
  local due = options.due or now
  if due >= 2840140800000000 then
    error('LEASEQ_BAD_ARGUMENT an item cannot become due after 2059', 0)
  end
  if options.dies and not options.expires then
    error('LEASEQ_BAD_ARGUMENT an item can only die when it expires (expires_to) where it expires (expires_in)', 0)
  end
  if options.expires and (options.expires <= due or options.expires >= 2840140800000000) then
    error('LEASEQ_BAD_ARGUMENT an item can expire only after it is due and before 2060', 0)
  end
  options.extra = #extra > 0 and struct.pack('<I2', 0) .. table.concat(extra) or nil
  return at, options
end
