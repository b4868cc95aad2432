-- Expects what add has read: of the call, of the queue and of its first `at` - 1 arguments. Adds several entries; leaves `answers`.
--#part options_table
local ids, first, options, plain = {}, {}, {}, true
for i = 1, entries do
  ids[i], first[i] = ARGV[at], at
  at, options[i] = options_table(at, max_data)
  plain = plain and not options[i]
end
--#part arity
-- of another type, a key that may be written is found here
call('ZCARD', ready)
if not plain then
  call('HLEN', meta)
  call('ZCARD', delayed)
  call('ZCARD', expiry)
end
if flags >= 2 then
  call('ZCARD', kept)
end
local queue = {
  items = items, meta = meta, ready = ready, delayed = delayed, dead = dead, expiry = expiry, kept = kept,
  flags = flags, clock = clock, next_due = next_due, largest = largest, added = added,
}
local answers
if plain and flags < 2 and max_items == 0 and entries * largest <= 1048576 then
  --#part add_plain
else
  --#part add_entries
  answers = add_entries(queue, entries, first, options, max_items)
end
if queue.changed then
  flags, clock, next_due, largest, added = queue.flags, queue.clock, queue.next_due, queue.largest, queue.added
  --#part write_state
  if asleep and (queue.nearer or flags % 2 == 0 and call('ZCARD', ready) > 0) then
    call('LPUSH', wake, '1')
  end
end
