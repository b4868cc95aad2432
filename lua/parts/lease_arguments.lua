-- Expects ARGV[1], ARGV[2]. The one-item call is the hot one: it parses one number.
local count, duration = 1, ARGV[2]
if ARGV[1] ~= '1' then
  count = ARGV[1] and string.find(ARGV[1], '^[0-9]+$') and #ARGV[1] <= 16 and tonumber(ARGV[1])
  if not count or count < 1 or count > 256 then
    error('LEASEQ_BAD_ARGUMENT count must be a whole number in 1..256', 0)
  end
end
duration = duration and #duration <= 16 and string.find(duration, '^[0-9]+$') and tonumber(duration)
if not duration or duration < 1 or duration > 2592000000 then
  error('LEASEQ_BAD_ARGUMENT duration must be a whole number of milliseconds in 1..2592000000 (30 days)', 0)
end
