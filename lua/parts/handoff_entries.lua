-- Reads the entries of complete_with. Leaves `ids`, `given`, one table each, and `keeping`, how many of them have a result key.
--#part add_options
--#part options_table
local ids, given, at, keeping, follow_ups = {}, {}, 3, 0, 0
for i = 1, entries do
  local id, token_text, option = ARGV[at] or '', ARGV[at + 1] or '', {follow = {}}
  check_id(id)
  local token = parse_token(token_text)
  option.id, option.token = id, token
  local count = parse_integer(ARGV[at + 2], 0, 3, 'the number of options')
  at = at + 3
  for _ = 1, count do
    local name, value = ARGV[at], ARGV[at + 1]
    if name == 'only_current' and value == '1' and not option.only_current then
      option.only_current = true
    elseif name == 'keep' and not option.keep then
      option.keep = parse_integer(value, 0, MAX_SPAN_MS, 'keep')
      keeping = keeping + 1
      local result = more[9 * targets + keeping]
      check_result_key(result, id)
      option.result = result
    elseif name == 'result' and value and not option.content then
      option.content = value
    else
      error('LEASEQ_BAD_ARGUMENT complete_with takes only_current (1), keep and result, once each', 0)
    end
    at = at + 2
  end
  if option.content and not option.keep then
    error('LEASEQ_BAD_ARGUMENT a result needs the option keep', 0)
  elseif option.content and #option.content > source.max_data then
    error('LEASEQ_TOO_LARGE the result is longer than the data of an item of this queue: ' .. source.max_data .. ' bytes', 0)
  end
  local following = parse_integer(ARGV[at], 0, 256, 'the number of follow-up items')
  follow_ups, at = follow_ups + following, at + 1
  if follow_ups > 256 then
    error('LEASEQ_BAD_ARGUMENT one call takes 256 follow-up items', 0)
  end
  for f = 1, following do
    local queue = target_of[parse_integer(ARGV[at], 1, math.max(1, targets), 'target')]
    if not queue then
      error('LEASEQ_BAD_ARGUMENT a follow-up item needs a target', 0)
    end
    local first = at + 1
    local behind, options = options_table(first, queue.max_data)
    option.follow[f] = {queue = queue, first = first, options = options}
    at = behind
  end
  ids[i], given[i] = id, option
end
