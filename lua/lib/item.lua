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
