-- Usually all are leased; the rest were requeued, delayed or dead when their old lease completed them after all.
if #won > 0 then
  if call('ZREM', leased, unpack(won)) < #won then
    call('ZREM', ready, unpack(won))
    call('ZREM', delayed, unpack(won))
    call('ZREM', dead, unpack(won))
  end
  call('HDEL', items, unpack(won))
  call('HDEL', meta, unpack(won))
end
