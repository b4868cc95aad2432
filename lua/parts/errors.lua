-- What a script raises is named already; what the server raises is named here, since 6.2 words it differently.
if type(reply) == 'table' then
  reply = reply.err
end
if not string.find(reply, '^LEASEQ_') then
  reply = string.match(reply, '%u%u%u+ .*') or reply
  if string.find(reply, '^WRONGTYPE') then
    reply = 'LEASEQ_WRONG_TYPE something else uses a key of this queue: give the queue another name or group'
  elseif string.find(reply, '^OOM') then
    reply = 'LEASEQ_OUT_OF_MEMORY the server reached maxmemory: nothing can be added until items are completed'
  end
end
return redis.error_reply(reply)
