"""leaseq's connection, for asyncio: a protocol and hiredis. Nothing is sent twice, and no reply is read by two."""

import asyncio
import contextlib
import math
import select
from collections.abc import Sequence
from typing import Any, Self, TypeVar, cast

import redis
from redis.exceptions import NoScriptError

from leaseq import errors
from leaseq._aio import concurrency, loop_end
from leaseq._aio.handshake import greet, network_timeout
from leaseq._aio.reply_stream import ReplyStream
from leaseq.commands import Argument, Command, pack
from leaseq.commands.encoding import UNREADABLE
from leaseq.durability import Confirmed, Durability
from leaseq.endpoint import Endpoint
from leaseq.process import THIS, ForkGuard
from leaseq.time_limit import LARGE_BYTES, TimeLimit, arrival_secs

T = TypeVar("T")

CLOSE_SECS = 1.0
"""Seconds that the server may take to notice that a connection is closed."""

_CLOSED = "the connection was closed"

_LOOKS = 10
"""Looks at a command that the server takes in slowly, in its time limit."""


class ReplyTimeoutError(Exception):
    """No reply came within the time."""


class Connection(ReplyStream):
    """One connection, for one user at a time; replies come in the order of the commands.

    Attributes:
        pending_replies: how many are still to come.
        asking: whether the next commands are for a slot that comes to this node.
        pipelined: whether a command was sent behind a block that is not over: what it brings would be lost with the connection.
        idle_list: where its pool keeps it between two users.
        slot: what it takes of the bound on connections in use.
        idle_since: when its last user returned it, in seconds; infinite while no other was idle beside it.
    """

    idle_list: list[Self]
    slot: concurrency.Slot | None = None
    idle_since = math.inf

    pending_replies = 0
    asking = False
    pipelined = False
    _half_closed = False
    _arrival_secs = 0.0
    """Seconds that replies may take longer because of large commands before them."""
    _known: frozenset[str] = frozenset()
    """Scripts and commands that the server is known to have: of calls that waited, and of their waits."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Use `open`."""
        super().__init__(endpoint)
        self._process = THIS.ask()
        self._poll: select.poll | None = None

    @classmethod
    async def open(cls, endpoint: Endpoint) -> Self:
        """Connect. Raises ConnectionError, TimeoutError, AuthenticationError of redis-py, or the error that the server says."""
        await loop_end.watch(_connections.all)
        connection = cls(endpoint)
        try:
            async with network_timeout(endpoint.connect_secs):
                await connection._connect()
                await greet(connection)
        except (OSError, UnicodeError) as error:
            connection.close()
            raise connection._broken("connecting to", error) from error
        except BaseException:
            connection.close()
            raise
        return connection

    async def _connect(self) -> None:
        endpoint, loop = self.endpoint, self.loop
        context = endpoint.tls()
        if endpoint.path is not None:
            name = endpoint.host if context is not None else None
            await loop.create_unix_connection(lambda: self, endpoint.path, ssl=context, server_hostname=name)
        else:
            await loop.create_connection(
                lambda: self, endpoint.host, endpoint.port, ssl=context, family=endpoint.family
            )
        sock = self._transport.get_extra_info("socket")
        endpoint.set_up(sock)
        _connections.add(self)
        if hasattr(select, "poll"):
            self._poll = select.poll()
            self._poll.register(sock.fileno(), select.POLLIN)

    def fileno(self) -> int:
        """The number of the socket; negative when it is closed."""
        if self._transport.is_closing():  # of uvloop, the number may be another's by now
            return -1
        sock = self._transport.get_extra_info("socket")
        return -1 if sock is None else cast("int", sock.fileno())

    @property
    def is_open(self) -> bool:
        """True if this process has it open."""
        return self._process == THIS.number and self._lost is None and self.fileno() >= 0

    def is_usable(self) -> bool:
        """Return whether it stands, belongs to this process and loop, and has nothing to read; ready for its next user then."""
        if self.pending_replies or self._closed or self._half_closed or self._lost or self._replies:
            return False
        if self._process != THIS.number or self.loop is not asyncio.get_running_loop():
            return False
        self.asking = self.pipelined = self.has_failed = False
        self._arrival_secs = 0.0
        # the loop may not have seen yet that the server closed it
        return self._poll is None or not self._poll.poll(0)

    async def call(self, command: Command[T], timeout: float | None = None) -> T:
        """Run a script and return its answer. See `receive`."""
        if command.durable is not None:
            confirmed: T = await self._call_durably(command, command.durable, timeout)
            return confirmed
        await self.send_packed(command.packed or pack(command.evalsha()))
        try:
            return command.parse(await self.read(timeout))
        except NoScriptError:
            return await self._call_by_text(command, timeout)
        except UNREADABLE as error:
            raise command.unreadable(error) from error

    async def send_call(self, command: Command[Any]) -> None:
        """Send a script by its digest, and a wait behind it if there is one."""
        packed = command.packed or pack(command.evalsha())
        await self.send_all((packed,) if command.durable is None else (packed, command.durable.packed))

    async def receive(self, command: Command[T], timeout: float | None = None) -> T:
        """Return the answer of a script that was sent by its digest. Raises as `read_within`."""
        try:
            answer = command.parse(
                await self.read_within(self.endpoint.reply_secs if timeout is None else timeout)
            )
        except NoScriptError:
            return await self._call_by_text(command, timeout)
        except UNREADABLE as error:
            raise command.unreadable(error) from error
        return answer if command.durable is None else await self._confirmed(answer, command.durable)

    async def _call_by_text(self, command: Command[T], timeout: float | None) -> T:
        """Run a script that the server does not know by its digest (LQ-SCRIPT-2)."""
        durable = command.durable
        if durable is None:
            await self.send(*command.eval())
        else:
            # first the reply of the wait behind the script that was not run
            with contextlib.suppress(redis.ResponseError):
                await self.read(durable.wait_secs + self.endpoint.reply_secs)
            await self.send_all((pack(command.eval()), durable.packed))
        try:
            answer = command.parse(await self.read(timeout))
        except UNREADABLE as error:
            raise command.unreadable(error) from error
        return answer if durable is None else await self._confirmed(answer, durable)

    async def _call_durably(self, command: Command[Any], durable: Durability, timeout: float | None) -> Any:
        """Run a script with a wait right behind it, if the server can do that. Its answer is a `Confirmed`."""
        if command.script.name not in self._known:
            # a wait behind a script that the server does not know would keep its text waiting
            await self._check(durable)
            answer = await self.call(command._replace(durable=None), timeout)
            self._known |= {command.script.name}
            return await self._confirmed(answer, durable, durable.packed)
        await self._check(durable)
        await self.send_call(command)
        try:
            answer = command.parse(await self.read(timeout))
        except NoScriptError:
            return await self._call_by_text(command, timeout)
        except UNREADABLE as error:
            raise command.unreadable(error) from error
        return await self._confirmed(answer, durable)

    async def _check(self, durable: Durability) -> None:
        """Ask once whether the server waits so. Raises errors of leaseq: no call was sent."""
        if durable.name in self._known:
            return
        try:
            await self.send(*durable.probe)
            await self.read()
        except redis.ResponseError as error:
            refused = errors.cannot_confirm(error, durable.name)
            if refused is not None:
                raise refused from error
        except (redis.RedisError, OSError) as error:
            self.close()
            raise errors.from_connection(error, sent=False) from error
        else:
            self._known |= {durable.name}

    async def _confirmed(self, answer: Any, durable: Durability, unsent: bytes | None = None) -> Any:
        """Read the reply of a wait, which `unsent` starts. The call was done, so no error of the wait hides its answer."""
        reached, reason = None, ""
        try:
            if unsent is not None:
                await self.send_packed(unsent)
            reached = durable.reached(await self.read(durable.wait_secs + self.endpoint.reply_secs))
        except redis.ResponseError as error:
            reason = f"the server did not wait: {error}"
        except (redis.RedisError, OSError, *UNREADABLE) as error:
            self.close()
            reason = f"the connection broke during the wait: {error}"
        return Confirmed.of(answer, durable, reached, reason)

    async def send(self, *command: Argument) -> None:
        """Send a command. It is on its way before this waits for anything, so an interruption does not stop it."""
        await self.send_packed(pack(command))

    async def send_packed(self, packed: bytes) -> None:
        """Send the bytes of a command, as `send`."""
        if self._closed or self._half_closed:
            raise redis.ConnectionError(_CLOSED)
        if self._lost is not None:
            raise self._lost
        if self.asking:
            await self._ask()
        self._transport.write(packed)
        self.pending_replies += 1
        if len(packed) > LARGE_BYTES:
            self._arrival_secs += arrival_secs(len(packed))
        if self._is_full:
            await self._drain()

    async def send_all(self, packed: Sequence[bytes]) -> None:
        """Send commands, packed, together, as `send`."""
        await self.send_packed(b"".join(packed))
        self.pending_replies += len(packed) - 1

    async def _drain(self) -> None:
        """Wait until the server takes more in, within the time limit of bytes that flow (LQ-CLIENT-19)."""
        seconds = pause = self.endpoint.reply_secs
        limit, now, left = TimeLimit(seconds, 0), 0.0, self._transport.get_write_buffer_size()
        while self._is_full and self._lost is None:
            # nothing tells of bytes that leave before the buffer is nearly empty
            step = min(pause, seconds / _LOOKS)
            await self._next_event(step)
            # not what the clock says: a loop that other work holds up sends nothing
            now, pause = now + step, pause - step
            before, left = left, self._transport.get_write_buffer_size()
            if left < before:
                pause = limit.pause(before - left, now)
            if self._is_late and pause <= 0:
                self.has_failed = True
                raise redis.TimeoutError("the server takes nothing in")

    async def _ask(self) -> None:
        """Say that the next command is for a slot that comes here."""
        self.asking = False
        try:
            await self.send("ASKING")
            await self.read()
        finally:
            self.asking = True

    async def read(self, seconds: float | None = None) -> Any:
        """Read a reply within `timeout`, or the time of the client. An interruption leaves it to be read later.

        Raises what the server answers as an error, ConnectionError, TimeoutError.
        """
        limit = self.endpoint.reply_secs if seconds is None else seconds
        while not self._replies:
            if self._lost is not None:
                raise self._lost
            await self._next_event(limit)
            if self._is_late and not self._replies:
                if not self._arrival_secs:
                    self.has_failed = True
                    raise redis.TimeoutError(f"Timeout reading from {self.endpoint}")
                # a large command may still be on its way
                limit, self._arrival_secs = self._arrival_secs, 0.0
        reply = self._replies.popleft()
        self.pending_replies -= 1
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def read_within(self, seconds: float) -> Any:
        """Read a reply that may take long. If it has started within the time, it is read to its end. Raises ReplyTimeoutError."""
        if not self._replies and self._lost is None:
            await self._next_event(seconds)
            if self._is_late and not self._replies and not self._reader.has_data():
                self.has_failed = True
                raise ReplyTimeoutError
        return await self.read()

    @property
    def is_elsewhere(self) -> bool:
        """True if it belongs to another event loop, which still runs."""
        return self.loop is not asyncio.get_running_loop() and not self.loop.is_closed()

    def close(self) -> None:
        """Close it: its replies are no longer wanted."""
        self._closed = True
        if self.loop.is_closed():
            self._outlive_loop()
        elif not self.loop.is_running() or loop_end.runs_here(self.loop):
            self._close()
        else:
            self.loop.call_soon_threadsafe(self._close)

    def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._wakes_at = math.inf
        # a parent and its child share what a loop has registered
        if hasattr(self, "_transport") and self._process == THIS.number:
            self._transport.abort()
        self._end(redis.ConnectionError(_CLOSED))

    def _outlive_loop(self) -> None:
        """Close the socket under a transport whose event loop was closed before it, and can do that no more."""
        if hasattr(self, "_transport") and not self._is_gone and self._process == THIS.number:
            # what that loop would have called; uvloop's has closed its sockets
            end: Any = getattr(self._transport, "_call_connection_lost", None)
            if end is not None:
                end(None)

    abort = close

    async def wait_closed(self) -> None:
        """Wait until the event loop is rid of it: a loop that ends before that would leave the socket open."""
        while self.loop is asyncio.get_running_loop() and self._process == THIS.number and not self._is_gone:
            await self._next_event(CLOSE_SECS)
            if self._is_late:
                break

    @property
    def can_half_close(self) -> bool:
        """True if it can end one direction, and has only the commands in it that are sent."""
        return not self.asking and self._transport.can_write_eof()

    def half_close(self) -> None:
        """Send nothing more: the server ends a block and closes; what it answered before can still be read."""
        self._half_closed = True
        with contextlib.suppress(OSError, RuntimeError):
            self._transport.write_eof()

    async def close_gracefully(self) -> None:
        """Close it, and wait until the server has: then no more wake-ups go there."""
        if self._transport.can_write_eof():
            self.half_close()
            self._is_late = False
            while not self._is_lost() and not self._is_late:
                await self._next_event(CLOSE_SECS)
                self._replies.clear()
        self.close()


_connections: ForkGuard[Connection] = ForkGuard()
