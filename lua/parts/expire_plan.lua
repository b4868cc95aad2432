-- Expects `over`, ids whose time in `expiry` has come. Leaves `expired` and `lapsed`; the others are only in the index by damage.
local expired, lapsed = {}, {}
for i, record in ipairs(#over > 0 and call('HMGET', meta, unpack(over)) or {}) do
  local id = over[i]
  if record then
    local options, attempt, latest_token, created = decode_record(record)
    local priority, max_attempts, keep, expires = decode_options(record, options)
    if
      expires > 0
      and expires <= now
      and call('HEXISTS', items, id) == 1
      and not call('ZSCORE', leased, id)
      and not call('ZSCORE', dead, id)
    then
      local ends = options >= 4 and lapsed or expired
      ends[#ends + 1] = id
    end
  end
end
