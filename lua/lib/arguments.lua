-- Arguments of a call: what is wrong with one is an error with a name.

-- Takes a text, the least and the greatest that it may be, and what it is. Gives a whole number. `tonumber` alone would take
-- 0x10, 1e3 and nan.
local function parse_integer(text, low, high, what)
  local number = text and #text <= MAX_DIGITS and string.find(text, '^[0-9]+$') and tonumber(text)
  if not number or number < low or number > high then
    error(string.format('LEASEQ_BAD_ARGUMENT %s must be a whole number in %.0f..%.0f', what, low, high), 0)
  end
  return number
end

-- Takes an id. ASCII ids pay for one match, the rest are checked as UTF-8: every valid sequence becomes a space.
--#inline
local function check_id(id)
  if #id > MAX_ID_BYTES or not string.find(id, '^[\1-\127]+$') then
    -- an id that is too long is refused unread: 40 MB of it took the server seconds
    local rest = string.gsub(string.sub(id, 1, 257), '[\194-\223][\128-\191]', ' ')
    rest = string.gsub(rest, '\224[\160-\191][\128-\191]', ' ')
    rest = string.gsub(rest, '[\225-\236\238\239][\128-\191][\128-\191]', ' ')
    rest = string.gsub(rest, '\237[\128-\159][\128-\191]', ' ')
    rest = string.gsub(rest, '\240[\144-\191][\128-\191][\128-\191]', ' ')
    rest = string.gsub(rest, '[\241-\243][\128-\191][\128-\191][\128-\191]', ' ')
    rest = string.gsub(rest, '\244[\128-\143][\128-\191][\128-\191]', ' ')
    if id == '' or #id > MAX_ID_BYTES or string.find(rest, '[%z\128-\255]') then
      error('LEASEQ_BAD_ID an id is 1..256 bytes of UTF-8 without NUL', 0)
    end
  end
end

-- Takes a text. Gives the token, a number. `tonumber` alone would take 0x10, 1e3 and nan.
--#inline
local function parse_token(text)
  if not string.find(text, '^[0-9]+$') or #text > MAX_DIGITS then
    error('LEASEQ_BAD_ARGUMENT a token is a whole number of at most 16 digits, as lease gave it', 0)
  end
  return text + 0
end

-- Takes the arguments of the call and the place after the last argument that was read.
--#inline
local function check_argument_count(argv, next_arg)
  if #argv ~= next_arg - 1 then
    error('LEASEQ_BAD_ARGUMENT the counts and the number of arguments disagree', 0)
  end
end

-- Takes the arguments of the call and the place of the number of ids; they are the last. Gives the ids.
local function parse_ids(argv, at)
  local entries, ids = parse_integer(argv[at], 1, MAX_ENTRIES, 'the number of entries'), {}
  for i = 1, entries do
    local id = argv[at + i] or ''
    check_id(id)
    ids[i] = id
  end
  check_argument_count(argv, at + entries + 1)
  return ids
end

-- Takes the key that a call passed for the outcome of an id; nil, one too few, is found by the number of keys.
--#inline
local function check_result_key(key, id)
  if key and string.sub(key, -#id - 8) ~= ':result:' .. id then
    error('LEASEQ_BAD_ARGUMENT a key result:<id> is not that of its entry: pass them in the order of the entries', 0)
  end
end

-- Takes the first two arguments of lease. Gives the count and the duration in ms. The call for one item is the hot one: it
-- parses one number.
--#inline
local function parse_lease_arguments(count_text, duration_text)
  local count = 1
  if count_text ~= '1' then
    count = count_text and string.find(count_text, '^[0-9]+$') and #count_text <= MAX_DIGITS and tonumber(count_text)
    if not count or count < 1 or count > MAX_ENTRIES then
      error('LEASEQ_BAD_ARGUMENT count must be a whole number in 1..256', 0)
    end
  end
  local duration = duration_text
  duration = duration and #duration <= MAX_DIGITS and string.find(duration, '^[0-9]+$') and tonumber(duration)
  if not duration or duration < 1 or duration > MAX_LEASE_MS then
    error('LEASEQ_BAD_ARGUMENT duration must be a whole number of milliseconds in 1..2592000000 (30 days)', 0)
  end
  return count, duration
end
