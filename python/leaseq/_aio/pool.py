"""Connections to one address, kept for the next call."""

import contextlib
import errno
import math
import sys
import warnings
import weakref
from os import getpid
from typing import Final

from redis.exceptions import AskError

from leaseq._aio import concurrency
from leaseq._aio.connection import Connection
from leaseq.endpoint import Endpoint
from leaseq.process import THIS

IDLE_SECS: Final = 60.0
"""Seconds after which a connection that no call has used is closed, at the next call's end."""

NO_DESCRIPTOR: Final = (errno.EMFILE, errno.ENFILE)
"""The process, or the machine, can open no more files and connections."""


class Pool:
    """Hands out the connection that came back last, if it stands and has nothing to read, else a new one.

    It is the route to a server that knows no others.
    """

    redirects = False

    def __init__(self, endpoint: Endpoint, slots: concurrency.Slots | None) -> None:
        """`endpoint` is where connections lead; `slots` bounds how many are in use, if anything does."""
        self._endpoint = endpoint
        self._slots = slots
        self._idle: list[Connection] = []
        self._opened: set[weakref.ref[Connection]] = set()
        """All that are open, idle or in use. Weak, since an interrupted call may not return its connection."""

    def __del__(self) -> None:
        """Close what its users forgot to close: an event loop would keep it open. Warns, as Python does of files."""
        if sys.is_finalizing():  # a program may leave the end to the system
            return
        THIS.ask()
        idle: list[Connection] = getattr(self, "_idle", [])
        count = sum(connection.is_open for connection in idle)
        for connection in idle:
            connection.close()
        if count:
            warnings.warn(
                f"{count} connection(s) to {self._endpoint} were not closed: close the queue or the App, or use it in a"
                " `with` block",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )

    async def acquire(
        self, _key: str = "", _redirection: AskError | None = None, until: float = math.inf
    ) -> Connection:
        """A connection, for the caller alone, opened by `until` on `concurrency.now`. Raises errors of redis-py."""
        if getpid() != THIS.number:
            THIS.ask()
        slot = None if self._slots is None else await self._slots.take()
        others: list[Connection] = []
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread took it
                break
            if connection.is_usable():
                connection.slot = slot
                if others:
                    self._idle[:0] = others
                return connection
            if connection.is_elsewhere:
                others.append(connection)
            else:
                connection.close()
        self._idle[:0] = others
        return await self._open(slot, until)

    async def resolve_endpoint(self) -> Endpoint:
        """Return where the next connection leads. Raises errors of redis-py."""
        return self._endpoint

    async def _open(self, slot: concurrency.Slot | None, until: float) -> Connection:
        idle_list = self._idle
        try:
            found = await self.resolve_endpoint()
            connection = await Connection.open(found.within(until - concurrency.now()))
        except BaseException as error:
            if self._slots is not None:
                self._slots.release(slot)
            if getattr(error.__cause__, "errno", None) in NO_DESCRIPTOR:
                self.close_idle()
            raise
        connection.idle_list, connection.slot = idle_list, slot
        self._opened.add(weakref.ref(connection, self._opened.discard))
        return connection

    def release(self, connection: Connection) -> None:
        """Take a connection back; never with a reply on its way that the next user would take for its."""
        slot, connection.slot = connection.slot, None  # first: an idle connection takes up no slot
        if connection.pending_replies or connection.idle_list is not self._idle:
            connection.close()
            if connection.has_failed:
                self.discard_idle()
        else:
            idle = self._idle
            idle.append(connection)
            if len(idle) > 1:
                self._close_unused(connection)
            else:
                connection.idle_since = math.inf
        if self._slots is not None:
            self._slots.release(slot)

    def _close_unused(self, latest: Connection) -> None:
        """Close what no call has used for long. In front are those that were used longest ago: the last to return is handed out first."""
        latest.idle_since = now = concurrency.now()
        with contextlib.suppress(IndexError):  # another thread took it
            while (first := self._idle[0]).idle_since < now - IDLE_SECS:
                self._idle.pop(0).close()
            first.idle_since = min(now, first.idle_since)

    def discard_idle(self) -> None:
        """Close the idle connections: one broke, and these may have the same fault (LQ-CLIENT-21)."""
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread took it
                self._idle.pop().close()

    def close_idle(self) -> None:
        """Close idle connections, and the others when they are returned."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    async def close(self) -> None:
        """Close all, and end the calls on those in use."""
        THIS.ask()
        closing = [each for reference in list(self._opened) if (each := reference()) is not None]
        idle = set(self._idle)
        in_use = [each for each in closing if each not in idle]
        self.close_idle()
        for connection in in_use:
            connection.abort()
        for connection in closing:
            await connection.wait_closed()
