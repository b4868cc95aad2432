-- The record of an item: what is known of it apart from its data. Items that were never leased and have no options have none.

-- Takes a record. Gives options (0 none; else 1, plus 2 where there is an extra, plus 4 where the item dies when it expires), the
-- attempt, the latest token and the time of creation.
--#inline
local function decode_record(record)
  if #record < RECORD_BYTES then
    error('LEASEQ_FORMAT the record of an item is damaged: run deep_clean', 0)
  end
  local version, options, attempt, latest_token, created = struct.unpack(RECORD_FORMAT, record)
  if version ~= FORMAT_VERSION or options ~= 0 or #record ~= RECORD_BYTES or not (created >= 0 and latest_token >= 0) then
    if version ~= FORMAT_VERSION or options > ALL_OPTIONS or options > 0 and options % 2 == 0 then
      error('LEASEQ_FORMAT the record of an item has an unknown format or flag: upgrade this client', 0)
    elseif #record ~= (options == 0 and RECORD_BYTES or RECORD_WITH_OPTIONS_BYTES) or not (created >= 0 and latest_token >= 0) then
      error('LEASEQ_FORMAT the record of an item is damaged: run deep_clean', 0)
    end
  end
  return options, attempt, latest_token, created
end

-- Takes the options that decode_record gave. Gives whether the item has an extra.
--#inline
local function has_extra(options)
  return options % 4 >= 2
end

-- Takes a record and the options that decode_record gave. Gives priority, max_attempts, keep (ms) and expires (us).
--#inline
local function decode_options(record, options)
  local priority, max_attempts, keep, expires = 0, 0, 0, 0
  if options ~= 0 then
    priority, max_attempts, keep, expires = struct.unpack(OPTIONS_FORMAT, record, OPTIONS_AT)
  end
  return priority, max_attempts, keep, expires
end

-- Takes what decode_record gives. Gives a record without what decode_options gives.
--#inline
local function encode_record(options, attempt, latest_token, created)
  return struct.pack(RECORD_FORMAT, FORMAT_VERSION, options, attempt, latest_token, created)
end

-- Takes what decode_options gives. Gives what stands behind the record.
--#inline
local function encode_options(priority, max_attempts, keep, expires)
  return struct.pack(OPTIONS_FORMAT, priority, max_attempts, keep, expires)
end

-- Takes the key `counters`, the name of a counter and by how much it rises. A counter that is no number (damage) starts again
-- at `by` and must not stop the script between two states of an item.
local function increment_counter(counters, name, by)
  if type(redis.pcall('HINCRBY', counters, name, by)) == 'table' then
    call('HSET', counters, name, by)
  end
end
