-- Expects `change`, which takes a command, `option.result`, the key, which is not there, and what the outcome says: kind, attempt,
-- token, created, ended, content; and `ttl` in ms.
local outcome = struct.pack('<BBI4ddd', 1, kind, attempt, token, created, ended) .. content
change('RPUSH', option.result, outcome)
change('PEXPIRE', option.result, string.format('%.0f', ttl))
change('ZADD', kept, string.format('%.0f', now + ttl * 1000), id)
if flags < 2 then
  flags = flags + 2
end
