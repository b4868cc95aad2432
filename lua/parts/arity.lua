-- Expects `at`, the place after the last argument that was read.
if #ARGV ~= at - 1 then
  error('LEASEQ_BAD_ARGUMENT the counts and the number of arguments disagree', 0)
end
