-- The exact next due time or deadline; 2^53 when there is none, 0 where damage made it less than any time.
local first_delayed = call('ZRANGE', delayed, '0', '0', 'WITHSCORES')[2]
local first_leased = call('ZRANGE', leased, '0', '0', 'WITHSCORES')[2]
next_due = math.min(tonumber(first_delayed or '9007199254740992'), tonumber(first_leased or '9007199254740992'))
next_due = math.max(0, next_due)
