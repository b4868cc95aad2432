-- The states of an item.

-- Takes the keys of the states and an id. Gives the name of the state that the item is in and its score there; `none` and false
-- where damage left it in no state.
local function find_state(leased, dead, delayed, ready, id)
  for _, each in ipairs({{'leased', leased}, {'dead', dead}, {'delayed', delayed}, {'ready', ready}}) do
    local score = call('ZSCORE', each[2], id)
    if score then
      return each[1], score
    end
  end
  return 'none', false
end

-- Takes ids and their records, the keys of the state that they are to be in and of `items`, the clock and the server's time; writes
-- nothing. Each item in that state gets the last place of its priority, once. Gives an answer for each id, 1 or 0; the ids with a 1;
-- their scores, arguments of ZADD; and the clock.
local function plan_ready(ids, records, state_zset, items, clock, now)
  local answers, chosen, scores, seen = {}, {}, {}, {}
  for i, id in ipairs(ids) do
    local record, item_priority = records[i], 0
    answers[i] = 0
    if not seen[id] and call('ZSCORE', state_zset, id) and call('HEXISTS', items, id) == 1 then
      if record then
        local options, _, _, _ = decode_record(record)
        local priority, _, _, _ = decode_options(record, options)
        item_priority = priority
      end
      clock = next_token(clock, now)
      seen[id] = true
      answers[i] = 1
      chosen[#chosen + 1] = id
      local score = ready_score(clock, item_priority)
      scores[#scores + 1] = score
      scores[#scores + 1] = id
    end
  end
  return answers, chosen, scores, clock
end
