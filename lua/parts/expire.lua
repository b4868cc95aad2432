-- Items whose time was over before they were ever leased: `expired` vanish, `lapsed` die. Their keys were read, and a no-op
-- was written that a full server allows.
if #expired > 0 then
  count_up('expired', #expired)
  call('HDEL', items, unpack(expired))
end
if #lapsed > 0 then
  count_up('died', #lapsed)
end
for _, id in ipairs(expired) do
  call('HDEL', meta, id, '\0' .. id)
  call('ZREM', expiry, id)
end
for _, id in ipairs(lapsed) do
  local record, packed = call('HGET', meta, id), call('HGET', meta, '\0' .. id)
  --#part unpack_record
  --#part unpack_tail
  if keep > 0 then
    died_kept[#died_kept + 1] = id
  end
  call('HSET', meta, id, struct.pack('<BBI4ddbI2I6d', 1, 7, attempt, current, created, priority, max_attempts, keep, 0))
  call('HSET', meta, '\0' .. id, with_error(packed, 'expired'))
  call('ZADD', dead, now, id)
  call('ZREM', expiry, id)
end
