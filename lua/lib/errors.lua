-- What a call that fails answers.

-- Takes what was raised. Gives the text of the error reply. What a script raises is named already; what the server raises is
-- named here, since 6.2 words it differently.
--#inline
local function error_text(raised)
  local text = raised
  if type(raised) == 'table' then
    text = raised.err
  end
  if not string.find(text, '^LEASEQ_') then
    text = string.match(text, '%u%u%u+ .*') or text
    if string.find(text, '^WRONGTYPE') then
      text = 'LEASEQ_WRONG_TYPE something else uses a key of this queue: give the queue another name or group'
    elseif string.find(text, '^OOM') then
      text = 'LEASEQ_OUT_OF_MEMORY the server reached maxmemory: nothing can be added until items are completed'
    end
  end
  return text
end

-- Takes a sorted set. A server out of memory refuses most first writes of a script, but none after a write that it allows. This
-- write does nothing, since no id is empty. So items move, and memory is freed, on a full server.
--#inline
local function allow_writes_when_full(zset)
  call('ZREM', zset, '')
end
