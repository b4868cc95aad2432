--- Ids in one state, paged by rank: next first, or last first. Read-only.
-- @key ready ZSET id -> place
-- @key delayed ZSET id -> due time, us
-- @key leased ZSET id -> deadline, us
-- @key dead ZSET id -> time of death, us
-- @key kept ZSET id -> end of its outcome, us
-- @arg state word ready|delayed|leased|dead|kept
-- @arg offset integer 0..9007199254740991
-- @arg limit integer 1..256
-- @arg order word forward|backward
-- @reply total integer, all items in the state
-- @reply items rest
-- @reply* id id
-- @reply* time time_us, when it took its place, is due, expires, died, or its outcome ends
-- @error LEASEQ_BAD_ARGUMENT LEASEQ_WRONG_TYPE
-- @complexity O(log n + limit)
local ready, delayed, leased, dead, kept = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local zset = ({ready = ready, delayed = delayed, leased = leased, dead = dead, kept = kept})[ARGV[1]]
local offset = parse_integer(ARGV[2], 0, LARGEST_INTEGER, 'offset')
local limit = parse_integer(ARGV[3], 1, MAX_ENTRIES, 'limit')
local command = ({forward = 'ZRANGE', backward = 'ZREVRANGE'})[ARGV[4]]
if not zset or not command then
  error('LEASEQ_BAD_ARGUMENT list takes a state (ready, delayed, leased, dead, kept) and an order (forward, backward)', 0)
end
check_argument_count(ARGV, 5)
local page = call(command, zset, offset, offset + limit - 1, 'WITHSCORES')
local reply = {call('ZCARD', zset)}
for i = 1, #page, 2 do
  reply[i + 1] = page[i]
  reply[i + 2] = zset == ready and time_of_score(page[i + 1]) or tonumber(page[i + 1])
end
return reply
