"""The replies that come over one connection of asyncio, and the waits for them."""

import asyncio
import collections
import math
from typing import Any, cast

import hiredis
import redis

from leaseq.endpoint import NOTHING, Endpoint, reader
from leaseq.time_limit import TimeLimit

_STALL_SECS = 0.02
"""Seconds of delay after which a timer's loop counts as held up by other work."""

_STEPS = 8
"""The looks at the clock in the time of a wait: a late one shows for how long the loop stood still."""


class ReplyStream(asyncio.Protocol):
    """The protocol that an event loop calls, and one waiter: for a reply, for room to write, or for the end.

    Attributes:
        endpoint: where the connection leads.
        loop: the event loop that it belongs to.
        has_failed: whether it broke or the server was silent for too long: others may have the same fault.
    """

    has_failed = False
    _closed = False
    _is_late = False
    _until = math.inf
    """When its user waits no longer, by the clock of the loop."""
    _first_until = math.inf
    """The same before the reply started."""
    _seconds = math.inf
    """The time of the wait, from its start."""
    _rest: TimeLimit | None = None
    """The limit of a reply that has started and is not here in full."""
    _wakes_at = math.inf
    _timer: asyncio.TimerHandle | None = None
    _lost: Exception | None = None
    _is_gone = False
    """True if the event loop is rid of it."""
    _transport: asyncio.Transport

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.loop = asyncio.get_running_loop()
        self._reader = reader()
        self._replies: collections.deque[Any] = collections.deque()
        self._waiter: asyncio.Future[None] | None = None
        self._is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that the connection is made."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Something came."""
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not NOTHING:
                if type(reply) is not hiredis.PushNotification:
                    self._replies.append(reply)
        except (redis.RedisError, MemoryError) as error:  # no reply at all
            self._end(self._broken("reading from", error) if isinstance(error, MemoryError) else error)
            self._transport.abort()
        else:
            if self._replies:
                self._wake()
            elif self._reader.has_data():
                self._renew(len(data))
            elif self._rest is not None:  # that was a push, and the reply has not started
                self._rest, self._until = None, self._first_until

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the connection is lost."""
        self._is_gone = True
        self._end(
            redis.ConnectionError("the server closed the connection")
            if error is None
            else self._broken("reading from", error)
        )

    def pause_writing(self) -> None:
        """The server takes nothing in."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Write again: the server takes data in."""
        self._is_full = False
        self._wake()

    def _expire(self) -> None:
        """The time of a wait may be over; mostly that wait is long over.

        One timer for many waits: one for each took 3.4 us, and this 0.6.
        """
        now = self.loop.time()
        late = now - self._wakes_at
        self._wakes_at, self._timer = math.inf, None
        if late > _STALL_SECS:
            # other work held the loop up: that is no time of the network, and what came meanwhile is read first (LQ-CLIENT-20)
            self._until += late
            self._first_until += late
        if self._until <= now + 0.001:
            self._is_late = True
            self._wake()
        elif self._waiter is not None and not self._waiter.done():
            self._look_at(now)

    def _look_at(self, now: float) -> None:
        """Look again after a step."""
        self._expire_at(min(self._until, now + self._seconds / _STEPS))

    def _expire_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at = at
        self._timer = self.loop.call_at(at, self._expire)

    def _renew(self, size: int) -> None:
        """Give a reply that is not here in full its time, now that more of it came (LQ-CLIENT-19)."""
        now = self.loop.time()
        if self._rest is None:
            self._rest = TimeLimit(min(self._seconds, self.endpoint.reply_secs), now)
            self._first_until, size = self._until, 0
        self._until = now + self._rest.pause(size, now)
        if self._until < self._wakes_at:
            self._expire_at(self._until)

    def _end(self, error: Exception) -> None:
        self.has_failed |= not self._closed
        self._lost = self._lost or error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done() and not self.loop.is_closed():
            self._waiter.set_result(None)

    def _next_event(self, seconds: float) -> asyncio.Future[None]:
        """Return what is done when something happens, or when the time is over: then `_is_late`."""
        self._is_late = False
        self._rest, self._seconds = None, seconds
        waiter = self._waiter = self.loop.create_future()
        now = self.loop.time()
        self._until = now + seconds
        if now + seconds / _STEPS < self._wakes_at:
            self._look_at(now)
        return waiter

    def _is_lost(self) -> bool:
        return self._lost is not None

    def _broken(self, action: str, error: Exception) -> redis.RedisError:
        """The error of redis-py for one of the socket."""
        if isinstance(error, TimeoutError):
            return redis.TimeoutError(f"Timeout {action} {self.endpoint}")
        return redis.ConnectionError(f"Error while {action} {self.endpoint}: {error}")
