-- The next `window` ready items and their records. Check them before the first write.
local heads, head_ids, records
local function read_heads(window)
  heads = call('ZRANGE', ready, '0', window - 1, 'WITHSCORES')
  head_ids = {}
  for i = 1, #heads / 2 do
    head_ids[i] = heads[2 * i - 1]
  end
  records = #head_ids > 0 and call('HMGET', meta, unpack(head_ids)) or {}
end
-- Answers whether one of them was leased before.
local function check_heads()
  local again = false
  for _, record in ipairs(records) do
    if record then
      --#part unpack_record
      again = again or current > 0
    end
  end
  return again
end
