-- Items whose time was over before they were ever leased: `expired` vanish, `lapsed` die. Their keys were read, and a no-op
-- was written that a full server allows.
if #expired > 0 then
  increment_counter(counters, 'expired', #expired)
  call('HDEL', items, unpack(expired))
end
if #lapsed > 0 then
  increment_counter(counters, 'died', #lapsed)
end
for _, id in ipairs(expired) do
  call('HDEL', meta, id, '\0' .. id)
  call('ZREM', expiry, id)
end
for _, id in ipairs(lapsed) do
  local record, packed = call('HGET', meta, id), call('HGET', meta, '\0' .. id)
  local options, attempt, latest_token, created = decode_record(record)
  local priority, max_attempts, keep, expires = decode_options(record, options)
  if keep > 0 then
    died_kept[#died_kept + 1] = id
  end
  call('HSET', meta, id, struct.pack(RECORD_WITH_OPTIONS_FORMAT, 1, 7, attempt, latest_token, created, priority, max_attempts, keep, 0))
  call('HSET', meta, '\0' .. id, set_last_error(packed, 'expired'))
  call('ZADD', dead, now, id)
  call('ZREM', expiry, id)
end
