-- The next `window` ready items, their places and their records. Check them before the first write. Places are for items without a
-- record: where many are read and the first has one, they are left out, since the server spends 0.25 us on each.
local heads, head_ids, records
local function read_heads(window)
  local first = window >= 16 and call('ZRANGE', ready, '0', '0')[1]
  if first and call('HEXISTS', meta, first) == 1 then
    heads, head_ids = {}, call('ZRANGE', ready, '0', window - 1)
  else
    heads, head_ids = call('ZRANGE', ready, '0', window - 1, 'WITHSCORES'), {}
    for i = 1, #heads / 2 do
      head_ids[i] = heads[2 * i - 1]
    end
  end
  records = #head_ids > 0 and call('HMGET', meta, unpack(head_ids)) or {}
end
-- Answers whether one of them was leased before.
local function check_heads()
  local again = false
  for _, record in ipairs(records) do
    if record then
      local options, attempt, latest_token, created = decode_record(record)
      again = again or latest_token > 0
    end
  end
  return again
end
