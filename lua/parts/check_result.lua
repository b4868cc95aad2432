-- Expects `result`, the key that a call passed for the outcome of `id`; nil, one too few, is told elsewhere.
if result and string.sub(result, -#id - 8) ~= ':result:' .. id then
  error('LEASEQ_BAD_ARGUMENT a key result:<id> is not that of its entry: pass them in the order of the entries', 0)
end
