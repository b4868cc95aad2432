-- Server time in microseconds. Scores are exact in a double only inside this range.
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if now < 1735689600000000 or now >= 2840140800000000 then
  error('LEASEQ_CLOCK the server clock is outside 2025..2060: set it right, then repeat the call', 0)
end
