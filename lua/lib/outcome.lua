-- The outcome of an item: its result or its failure, kept in a list under the key result:<id> while the id is in `kept`.

-- Takes the key result:<id> and whether the id is in `kept`. Gives the outcome (false: none that counts), its kind, and the
-- attempt, token, time of creation and end of its item.
--#inline
local function load_outcome(key, is_kept)
  local outcome = is_kept and call('LINDEX', key, '0')
  local kind, attempt, token, created, ended
  if outcome then
    local form = string.sub(outcome, 1, 2)
    if #outcome < OUTCOME_BYTES or form ~= '\1\1' and form ~= '\1\2' then
      error('LEASEQ_FORMAT the outcome of an item has an unknown format: upgrade this client', 0)
    end
    kind, attempt, token, created, ended = struct.unpack('<BI4ddd', outcome, 2)
  end
  return outcome, kind, attempt, token, created, ended
end

-- Takes the function that runs a command (or takes it up for later), the key `kept`, the id, the key result:<id>, at which nothing
-- is, the time until which the outcome is kept, as the server's time and ms from then, and what the outcome says.
--#inline
local function store_outcome(change, kept, id, key, now, ttl, kind, attempt, token, created, ended, content)
  local packed = struct.pack(OUTCOME_FORMAT, FORMAT_VERSION, kind, attempt, token, created, ended) .. content
  change('RPUSH', key, packed)
  change('PEXPIRE', key, string.format('%.0f', ttl))
  change('ZADD', kept, string.format('%.0f', now + ttl * 1000), id)
end
