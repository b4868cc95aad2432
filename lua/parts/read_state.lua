--#part parse_state
if not (clock < 2840140800000000 and next_due >= 0) then
  -- no clock gave these; every place and token to come would be as wrong
  error('LEASEQ_FORMAT the state of this queue is damaged: run deep_clean', 0)
end
