-- Usually all are leased. `elsewhere`: some were requeued, delayed or dead when their old lease completed them after
-- all, or stand in the call twice, where the first one wins.
if wins > 0 then
  elsewhere = call('ZREM', leased, unpack(won)) < wins
  if elsewhere then
    call('ZREM', ready, unpack(won))
    call('ZREM', delayed, unpack(won))
    call('ZREM', dead, unpack(won))
    local seen = {}
    for i = 1, entries do
      if answers[i] == 1 then
        answers[i] = seen[ids[i]] or 1
        seen[ids[i]] = 0
      end
    end
  end
  call('HDEL', items, unpack(won))
  call('HDEL', meta, unpack(won))
  if #extras > 0 then
    call('HDEL', meta, unpack(extras))
  end
end
