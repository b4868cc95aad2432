-- Opens the target queues, whose keys are the first of `more`. Leaves `source` and `target_of`, by number, and `queues`, all of
-- them. One queue may be the source and a target, or a target twice: its state is read once and written once.
local queues, opened = {}, {}
local function open(keys)
  local queue = opened[keys.state]
  if not queue then
    local state, items = keys.state, keys.items
    local stored, flags, clock, next_due, largest, added, leases, limits = load_state(state, items)
    if not stored and call('ZCARD', keys.kept) > 0 then
      flags = 2
    end
    queue = keys
    queue.flags, queue.clock, queue.next_due, queue.largest, queue.added = flags, clock, next_due, largest, added
    queue.leases, queue.limits, queue.flags_read = leases, limits, flags
    queue.max_data = struct.unpack('<I4', limits)
    queue.max_data = queue.max_data > 0 and queue.max_data or 1048576
    opened[keys.state] = queue
    queues[#queues + 1] = queue
  end
  return queue
end
local source, target_of = open({state = state, items = items, kept = kept}), {}
for number = 1, targets do
  local k = 9 * number - 8
  local keys = {
    items = more[k], meta = more[k + 1], ready = more[k + 2], delayed = more[k + 3], dead = more[k + 4],
    expiry = more[k + 5], kept = more[k + 6], state = more[k + 7], wake = more[k + 8],
  }
  if not keys.wake then
    error('LEASEQ_BAD_ARGUMENT complete_with takes nine keys for each target', 0)
  end
  local queue = open(keys)
  for name, key in pairs(keys) do
    queue[name] = key
  end
  queue.asleep = call('LLEN', queue.wake) == 0
  call('HLEN', queue.items)
  call('HLEN', queue.meta)
  for _, zset in ipairs({queue.ready, queue.delayed, queue.dead, queue.expiry, queue.kept}) do
    call('ZCARD', zset)
  end
  target_of[number] = queue
end
