-- The server's time, the clock of a queue, and the scores of ready items, which are made of both.

-- Gives the server's time in us. Scores are exact in a double only inside this range.
--#inline
local function server_time()
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  if now < EPOCH_2025_US or now >= LATEST_TIME_US then
    error('LEASEQ_CLOCK the server clock is outside 2025..2060: set it right, then repeat the call', 0)
  end
  return now
end

-- Takes the clock of a queue and the server's time. Gives the next token, creation time or place in line: later than every one
-- before it, and the server's time where that is.
--#inline
local function next_token(clock, now)
  local token = clock + 1
  if now > token then
    token = now
  end
  return token
end

-- Takes a time and a priority. Gives the score of a ready item.
--#inline
local function ready_score(time, priority)
  return time - EPOCH_2025_US - priority * PRIORITY_STEP
end

-- Takes the score of a ready item. Gives the time in it; the priority is left out.
--#inline
local function time_of_score(score)
  return EPOCH_2025_US + score % PRIORITY_STEP
end
