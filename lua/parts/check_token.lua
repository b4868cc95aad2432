-- Expects `token` as text, leaves it a number. `tonumber` alone would take 0x10, 1e3 and nan.
if not string.find(token, '^[0-9]+$') or #token > 16 then
  error('LEASEQ_BAD_ARGUMENT a token is a whole number of at most 16 digits, as lease gave it', 0)
end
token = token + 0
