--- Complete items: 1 for the first call with a token that the item has had since it was added, else 0.
-- @key items HASH id -> data
-- @key meta HASH id -> record, NUL id -> extra
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @arg entries count 1..256
-- @entry id id
-- @entry token token
-- @entry options options
-- @option only_current flag, complete it only while this lease is the current one (LQ-COMPLETE-4)
-- @reply entries each
-- @reply* completed boolean
-- @error LEASEQ_BAD_ID LEASEQ_BAD_ARGUMENT LEASEQ_FORMAT LEASEQ_WRONG_TYPE
-- @complexity O(log n) for each entry
local items, meta, ready, delayed, leased, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
if ARGV[1] == '1' and ARGV[4] == '0' and #ARGV == 4 then
  -- The hot path: the same as below for one entry.
  local id = ARGV[2]
  local token = parse_token(ARGV[3])
  local record = call('HGET', meta, id)
  -- NUL and an id are the name of an extra
  if not record or string.byte(id) == 0 then
    check_id(id)
    return 0
  end
  local options, _, latest_token, created = decode_record(record)
  if token <= created or token > latest_token then
    return 0
  end
  -- A key of another type fails here, before the first write.
  call('HLEN', items)
  leave_state(leased, ready, delayed, dead, id)
  delete_item(items, meta, id, options)
  return 1
end
--#functions
local queue = {items = items, meta = meta, ready = ready, delayed = delayed, leased = leased, dead = dead}
local ids, tokens, only_current = parse_completions(ARGV, 1)
local answers, completed, extras = plan_completions(queue, ids, tokens, only_current)
write_completions(queue, ids, answers, completed, extras)
return #ids == 1 and answers[1] or answers
