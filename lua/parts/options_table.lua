-- The options of an entry as a table, which is nil where it has none, behind the place that follows the entry.
local function options_table(at, max_data)
  local behind, due, bits, priority, max_attempts, expires, keep, extra = entry_options(at, max_data)
  if bits == 0 and not due then
    return behind, nil
  end
  return behind,
    {
      due = due, bits = bits, priority = priority, max_attempts = max_attempts, expires = expires, keep = keep, extra = extra,
    }
end
