-- Expects `at`, the place of the entry count. Leaves `answers` and `won`, the ids that are completed; an id that is
-- there twice wins twice until complete_write corrects it.
local entries = parse_integer(ARGV[at], 1, MAX_ENTRIES, 'the number of entries')
at = at + 1
local ids, tokens, only_current = {}, {}, {}
for i = 1, entries do
  local token_text = ARGV[at + 1] or ''
  local token = parse_token(token_text)
  ids[i], tokens[i] = ARGV[at], token
  local options = ARGV[at + 2]
  at = at + 3
  if options ~= '0' and parse_integer(options, 0, 1, 'the number of options') == 1 then
    if ARGV[at] ~= 'only_current' or ARGV[at + 1] ~= '1' then
      error('LEASEQ_BAD_ARGUMENT complete knows the option only_current with the value 1', 0)
    end
    only_current[i] = true
    at = at + 2
  end
end
check_argument_count(ARGV, at)
local answers, won, wins, elsewhere, extras = {}, {}, 0, false, {}
local completed = call('HMGET', meta, unpack(ids))
call('HLEN', items)
call('ZCARD', leased)
call('ZCARD', ready)
call('ZCARD', delayed)
call('ZCARD', dead)
for i = 1, entries do
  local id, record, token = ids[i], completed[i], tokens[i]
  answers[i] = 0
  if record and string.byte(id) ~= 0 then
    local options, attempt, latest_token, created = decode_record(record)
    if
      token > created
      and token <= latest_token
      and (not only_current[i] or token == latest_token and call('ZSCORE', leased, id))
    then
      wins = wins + 1
      won[wins] = id
      answers[i] = 1
      if options % 4 >= 2 then
        extras[#extras + 1] = '\0' .. id
      end
    end
  else
    check_id(id)
  end
end
