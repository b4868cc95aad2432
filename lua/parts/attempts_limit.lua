-- Expects `limits` and `max_attempts` of an item, leaves the limit that applies: 0 there is the queue's own, 65535 none.
if max_attempts == 0 then
  max_attempts = struct.unpack('<I2', limits, 9)
elseif max_attempts == 65535 then
  max_attempts = 0
end
