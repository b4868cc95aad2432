-- Expects `head` and `id`, the next ready item. Leaves its token, attempts and `fresh`, its record once it is leased; that
-- is nil where it has options that take more than this.
local record, attempts, fresh = call('HGET', meta, id), 1, nil
local token = clock + 1
if now > token then
  token = now
end
if record then
  local options, attempt, latest_token, created = decode_record(record)
  attempts = attempt + 1
  if options == 0 then
    fresh = struct.pack(RECORD_FORMAT, 1, 0, attempts, token, created)
  elseif options == 1 and string.sub(record, 26) == '\0\0\0\0\0\0\0\0\0\0\0\0\0\0' then
    fresh = struct.pack(RECORD_FORMAT, 1, 1, attempts, token, created) .. string.sub(record, 23)
  end
else
  fresh = struct.pack(RECORD_FORMAT, 1, 0, 1, token, head[2] % PRIORITY_STEP + EPOCH_2025_US)
end
