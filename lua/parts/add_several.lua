-- Expects what add has read: of the call, of the queue and of its first argument. Adds several entries; leaves `answers`.
local queue = {
  items = items, meta = meta, ready = ready, delayed = delayed, dead = dead, expiry = expiry, kept = kept,
  flags = flags, clock = clock, next_due = next_due, largest = largest, added = added,
}
-- most entries have no options and ids of ASCII: whatever is otherwise, or wrong, is found below
local argv, ids, answers = ARGV, {}, nil
local plain = #argv == 3 * entries + 1 and flags < 2 and max_items == 0 and entries * largest <= 1048576
for i = 1, plain and entries or 0 do
  local id = argv[3 * i - 1]
  ids[i] = id
  if #id > 256 or id == '' or #argv[3 * i] > max_data or argv[3 * i + 1] ~= '0' then
    plain = false
    break
  end
end
if plain and string.find(table.concat(ids), '^[\1-\127]+$') then
  --#part add_plain
end
if not answers then
  --#part options_table
  local first, options, optional = {}, {}, false
  for i = 1, entries do
    first[i] = at
    at, options[i] = options_table(at, max_data)
    optional = optional or options[i]
  end
  check_argument_count(ARGV, at)
  -- of another type, a key that may be written is found here
  call('ZCARD', ready)
  if optional then
    call('HLEN', meta)
    call('ZCARD', delayed)
    call('ZCARD', expiry)
  end
  if flags >= 2 then
    call('ZCARD', kept)
  end
  --#part add_entries
  answers = add_entries(queue, entries, first, options, max_items)
end
if queue.changed then
  flags, clock, next_due, largest, added = queue.flags, queue.clock, queue.next_due, queue.largest, queue.added
  save_state(state, flags, clock, next_due, largest, added, leases, limits)
  if asleep and (queue.nearer or flags % 2 == 0 and call('ZCARD', ready) > 0) then
    call('LPUSH', wake, '1')
  end
end
