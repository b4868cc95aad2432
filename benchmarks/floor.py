"""The floor: the fewest commands that could add, lease and complete, with none of leaseq's features.

No clock, no attempts that survive, no limits, no checks of arguments or types, no wake-ups, no recovery. What leaseq
costs beyond this is the price of its guarantees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench_server import BenchServer

READY, LEASED, ITEMS, CLOCK = KEYS = ("{floor}:ready", "{floor}:leased", "{floor}:items", "{floor}:clock")

ADD = (
    "if redis.call('HSETNX',KEYS[3],ARGV[1],ARGV[2])==0 then return 0 end "
    "redis.call('ZADD',KEYS[1],redis.call('INCR',KEYS[4]),ARGV[1]) return 1"
)
LEASE = (
    "local x=redis.call('ZPOPMIN',KEYS[1]); local id=x[1]; if not id then return false end; "
    "local t=redis.call('TIME'); local e=string.format('%.0f',t[1]*1000000+t[2]+ARGV[1]*1000); "
    "redis.call('ZADD',KEYS[2],e,id); local v=redis.call('HMGET',KEYS[3],id,'a:'..id); "
    "return {id,v[1],(v[2] or 0)+1,e}"
)
COMPLETE = (
    "if redis.call('ZSCORE',KEYS[2],ARGV[1])~=ARGV[2] then return 0 end redis.call('ZREM',KEYS[2],ARGV[1]) "
    "redis.call('HDEL',KEYS[3],ARGV[1],'a:'..ARGV[1]) return 1"
)
COMPLETE_AND_LEASE = (
    "local won=0; if redis.call('ZSCORE',KEYS[2],ARGV[2])==ARGV[3] then redis.call('ZREM',KEYS[2],ARGV[2]) "
    "redis.call('HDEL',KEYS[3],ARGV[2],'a:'..ARGV[2]) won=1 end "
    "local x=redis.call('ZPOPMIN',KEYS[1]); local id=x[1]; if not id then return {won} end; "
    "local t=redis.call('TIME'); local e=string.format('%.0f',t[1]*1000000+t[2]+ARGV[1]*1000); "
    "redis.call('ZADD',KEYS[2],e,id); local v=redis.call('HMGET',KEYS[3],id,'a:'..id); "
    "return {won,id,v[1],(v[2] or 0)+1,e}"
)

ADD_JOB = (
    "if redis.call('EXISTS',KEYS[1])==1 then return 0 end "
    "redis.call('HSET',KEYS[1],'msg',ARGV[1],'state','pending','pending_since',ARGV[3]) "
    "redis.call('LPUSH',KEYS[2],ARGV[2]) return 1"
)
"""The enqueue of asynq 0.26, in fewer words."""

ADD_MANY = """
local call, n = redis.call, #ARGV / 2
local ids, fields, places, k = {}, {}, {}, 0
for i = 1, n do ids[i] = ARGV[2 * i - 1] end
local top = call('INCRBY', KEYS[4], n) - n
for i, data in ipairs(call('HMGET', KEYS[3], unpack(ids))) do
  if not data then
    places[k + 1], places[k + 2] = top + i, ids[i]
    fields[k + 1], fields[k + 2] = ids[i], ARGV[2 * i]
    k = k + 2
  end
end
if k == 0 then return 0 end
call('HSET', KEYS[3], unpack(fields))
call('ZADD', KEYS[1], unpack(places))
return k / 2
"""
"""The ids of one call have to differ: that is not checked."""
LEASE_MANY = """
local call = redis.call
local popped = call('ZPOPMIN', KEYS[1], ARGV[2])
local n = #popped
if n == 0 then return false end
local t = call('TIME')
local deadline = string.format('%.0f', t[1] * 1000000 + t[2] + ARGV[1] * 1000)
local deadlines, fields = {}, {}
for i = 1, n, 2 do
  local id = popped[i]
  deadlines[i], deadlines[i + 1] = deadline, id
  fields[i], fields[i + 1] = id, 'a:' .. id
end
call('ZADD', KEYS[2], unpack(deadlines))
local values, reply, k = call('HMGET', KEYS[3], unpack(fields)), {deadline}, 1
for i = 1, n, 2 do
  reply[k + 1], reply[k + 2], reply[k + 3] = popped[i], values[i], (values[i + 1] or 0) + 1
  k = k + 3
end
return reply
"""
COMPLETE_MANY = """
local call, n, ids = redis.call, #ARGV / 2, {}
for i = 1, n do ids[i] = ARGV[2 * i - 1] end
local deadlines, won, fields, k = call('ZMSCORE', KEYS[2], unpack(ids)), {}, {}, 0
for i = 1, n do
  if deadlines[i] == ARGV[2 * i] then
    local id = ids[i]
    k = k + 1
    won[k], fields[2 * k - 1], fields[2 * k] = id, id, 'a:' .. id
  end
end
if k == 0 then return 0 end
call('ZREM', KEYS[2], unpack(won))
call('HDEL', KEYS[3], unpack(fields))
return k
"""

Held = tuple[bytes, ...]
"""Arguments of `complete` for the items of one lease: id and deadline, in turn."""


class Floor:
    """The floor on one server; calls of one item (`batch` 1) or of many."""

    def __init__(self, server: BenchServer, batch: int) -> None:
        self._server = server
        self._batch = batch
        sources = (ADD, LEASE, COMPLETE) if batch == 1 else (ADD_MANY, LEASE_MANY, COMPLETE_MANY)
        self._add, self._lease, self._complete = map(server.load, sources)

    def add(self, ids: list[str], data: bytes) -> None:
        """Add one batch."""
        arguments = [part for item in ids for part in (item, data)]
        added = self._server.call("EVALSHA", self._add, "4", *KEYS, *arguments)
        if added != len(ids):
            raise AssertionError(added)

    def lease(self, milliseconds: int) -> Held:
        """Lease one batch."""
        count = () if self._batch == 1 else (str(self._batch),)
        reply = self._server.call("EVALSHA", self._lease, "3", *KEYS[:3], str(milliseconds), *count)
        if self._batch == 1:
            return (reply[0], reply[3])
        return tuple(part for item in reply[1::3] for part in (item, reply[0]))

    def complete(self, held: Held) -> None:
        """Complete what one lease gave."""
        won = self._server.call("EVALSHA", self._complete, "3", *KEYS[:3], *held)
        if won != len(held) // 2:
            raise AssertionError(won)
