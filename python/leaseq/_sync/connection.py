"""A connection of our own, for threads: a socket and hiredis. Nothing is sent twice, and no reply is read by two."""

import contextlib
import math
import select
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self, TypeVar

import hiredis
import redis
from redis.exceptions import NoScriptError

from leaseq import errors
from leaseq._sync import concurrency
from leaseq._sync.handshake import LEAST_SECS, connected, greet, limited_by_kernel, timeval
from leaseq._sync.race import Stop, current
from leaseq.commands import Argument, Command, pack
from leaseq.commands.encoding import UNREADABLE
from leaseq.durability import Confirmed, Durability
from leaseq.endpoint import NOTHING, Endpoint, reader
from leaseq.process import THIS, ForkGuard
from leaseq.time_limit import LARGE_BYTES, TimeLimit, arrival_secs

T = TypeVar("T")

CLOSE_SECS = 1.0
"""Seconds that the server may take to notice that a connection is closed."""

_CHUNK = 65536
_END = object()
_CLOSED = "the connection was closed"


class ReplyTimeoutError(Exception):
    """No reply came within the time."""


class Connection:
    """One socket, for one user at a time; replies come in the order of the commands.

    Attributes:
        endpoint: where it leads.
        pending_replies: how many are still to come.
        asking: whether the next commands are for a slot that comes to this node.
        pipelined: whether a command was sent behind a block that is not over: what it brings would be lost with the connection.
        has_failed: whether it broke or the server was silent for too long: others may have the same fault.
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
    has_failed = False
    _closed = False
    _half_closed = False
    _arrival_secs = 0.0
    """Seconds that replies may take longer because of large commands before them."""
    _known: frozenset[str] = frozenset()
    """Scripts and commands that the server is known to have: of calls that waited, and of their waits."""
    _timeout: float | None = None
    _has_timeval = False
    """True if a time limit can be set with one call of the system."""
    _socket: socket.socket

    @classmethod
    def open(cls, endpoint: Endpoint) -> Self:
        """Connect. Raises ConnectionError, TimeoutError, AuthenticationError of redis-py, or the error that the server says."""
        connection = cls(endpoint)
        until = concurrency.now() + endpoint.connect_secs
        try:
            connection._use(connected(endpoint, until))
            _connections.add(connection)
            greet(connection, until)
        except (OSError, UnicodeError) as error:
            raise connection._broken("connecting to", error) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def __init__(self, endpoint: Endpoint) -> None:
        """Use `open`."""
        self.endpoint = endpoint
        self._reader = reader()
        self._process = THIS.ask()

    def __del__(self) -> None:
        if hasattr(self, "_socket"):
            self._socket.close()

    def fileno(self) -> int:
        """The number of the socket; negative when it is closed."""
        return self._socket.fileno()

    def _use(self, sock: socket.socket) -> None:
        """Send and receive here."""
        self._socket = sock
        self._look = _look(sock)
        # in one step, between whose halves no signal handler can raise: the bytes would be lost, and the reply waited for
        self._received = map(self._reader.feed, iter(partial(self._socket.recv, _CHUNK), b""))
        self._has_timeval = limited_by_kernel(sock)

    @property
    def is_open(self) -> bool:
        """True if this process has it open."""
        return self._process == THIS.number and self.fileno() >= 0

    def is_usable(self) -> bool:
        """Return whether it stands, belongs to this process, and has nothing to read; ready for its next user then."""
        if self._closed or self._half_closed or self.pending_replies or self._process != THIS.number:
            return False
        self.asking = self.pipelined = self.has_failed = False
        self._arrival_secs = 0.0
        return not (self._look(0) or self._reader.has_data()) or self._has_pushes_only()

    def _has_pushes_only(self) -> bool:
        """Read what nobody asked for: whether it is no reply, and no end."""
        self._timeout = None
        try:
            self._socket.settimeout(0)
            try:
                data = self._socket.recv(_CHUNK)
            finally:
                self._socket.settimeout(None)
            if not data:
                return False
            self._reader.feed(data)
        except (BlockingIOError, ssl.SSLWantReadError):
            pass  # the reader may have something
        except OSError:
            return False
        try:
            while (reply := self._reader.gets()) is not NOTHING:
                if type(reply) is not hiredis.PushNotification:
                    return False
        except redis.RedisError:  # no reply at all
            return False
        return not self._reader.has_data()

    def call(self, command: Command[T], timeout: float | None = None) -> T:
        """Run a script and return its answer. See `receive`."""
        if command.durable is not None:
            confirmed: T = self._call_durably(command, command.durable, timeout)
            return confirmed
        self.send_packed(command.packed or pack(command.evalsha()))
        try:
            return command.parse(self.read(timeout))
        except NoScriptError:
            return self._call_by_text(command, timeout)
        except UNREADABLE as error:
            raise command.unreadable(error) from error

    def send_call(self, command: Command[Any]) -> None:
        """Send a script by its digest, and a wait behind it if there is one."""
        packed = command.packed or pack(command.evalsha())
        self.send_all((packed,) if command.durable is None else (packed, command.durable.packed))

    def receive(self, command: Command[T], timeout: float | None = None) -> T:
        """Return the answer of a script that was sent by its digest. Raises as `read_within`."""
        try:
            answer = command.parse(self.read_within(self.endpoint.reply_secs if timeout is None else timeout))
        except NoScriptError:
            return self._call_by_text(command, timeout)
        except UNREADABLE as error:
            raise command.unreadable(error) from error
        return answer if command.durable is None else self._confirmed(answer, command.durable)

    def _call_by_text(self, command: Command[T], timeout: float | None) -> T:
        """Run a script that the server does not know by its digest (LQ-SCRIPT-2)."""
        durable = command.durable
        if durable is None:
            self.send(*command.eval())
        else:
            # first the reply of the wait behind the script that was not run
            with contextlib.suppress(redis.ResponseError):
                self.read(durable.wait_secs + self.endpoint.reply_secs)
            self.send_all((pack(command.eval()), durable.packed))
        try:
            answer = command.parse(self.read(timeout))
        except UNREADABLE as error:
            raise command.unreadable(error) from error
        return answer if durable is None else self._confirmed(answer, durable)

    def _call_durably(self, command: Command[Any], durable: Durability, timeout: float | None) -> Any:
        """Run a script with a wait right behind it, if the server can do that. Its answer is a `Confirmed`."""
        if command.script.name not in self._known:
            # a wait behind a script that the server does not know would keep its text waiting
            self._check(durable)
            answer = self.call(command._replace(durable=None), timeout)
            self._known |= {command.script.name}
            return self._confirmed(answer, durable, durable.packed)
        self._check(durable)
        self.send_call(command)
        try:
            answer = command.parse(self.read(timeout))
        except NoScriptError:
            return self._call_by_text(command, timeout)
        except UNREADABLE as error:
            raise command.unreadable(error) from error
        return self._confirmed(answer, durable)

    def _check(self, durable: Durability) -> None:
        """Ask once whether the server waits so. Raises errors of leaseq: no call was sent."""
        if durable.name in self._known:
            return
        try:
            self.send(*durable.probe)
            self.read()
        except redis.ResponseError as error:
            refused = errors.cannot_confirm(error, durable.name)
            if refused is not None:
                raise refused from error
        except (redis.RedisError, OSError) as error:
            self.close()
            raise errors.from_connection(error, sent=False) from error
        else:
            self._known |= {durable.name}

    def _confirmed(self, answer: Any, durable: Durability, unsent: bytes | None = None) -> Any:
        """Read the reply of a wait, which `unsent` starts. The call was done, so no error of the wait hides its answer."""
        reached, reason = None, ""
        try:
            if unsent is not None:
                self.send_packed(unsent)
            reached = durable.reached(self.read(durable.wait_secs + self.endpoint.reply_secs))
        except redis.ResponseError as error:
            reason = f"the server did not wait: {error}"
        except (redis.RedisError, OSError, *UNREADABLE) as error:
            self.close()
            reason = f"the connection broke during the wait: {error}"
        return Confirmed.of(answer, durable, reached, reason)

    def send(self, *command: Argument) -> None:
        """Send a command."""
        self.send_packed(pack(command))

    def send_packed(self, packed: bytes) -> None:
        """Send the bytes of a command."""
        if self._closed or self._half_closed:
            raise redis.ConnectionError(_CLOSED)
        if self.asking:
            self._ask()
        self.pending_replies += 1
        try:
            if not self._has_timeval and self._timeout != self.endpoint.reply_secs:
                # it is for both directions, and a block or a look for pushes set another
                self._timeout = self.endpoint.reply_secs
                self._socket.settimeout(self._timeout)
            sent = self._socket.send(packed)
            if sent != len(packed) or sent > LARGE_BYTES:
                self._arrival_secs += arrival_secs(len(packed))
                self._send_rest(packed, sent)
        except OSError as error:
            raise self._broken("writing to", error) from error

    def send_all(self, packed: Sequence[bytes]) -> None:
        """Send commands, packed, together."""
        self.send_packed(b"".join(packed))
        self.pending_replies += len(packed) - 1

    def _send_rest(self, packed: bytes, sent: int) -> None:
        """Send what the server did not take in at once, within the time limit of bytes that flow (LQ-CLIENT-19)."""
        left = memoryview(packed)[sent:]
        limit = TimeLimit(self.endpoint.reply_secs, concurrency.now())
        while left:
            sent = self._socket.send(left)
            left = left[sent:]
            if left and limit.pause(sent, concurrency.now()) <= 0:
                raise TimeoutError

    def _ask(self) -> None:
        """Say that the next command is for a slot that comes here."""
        self.asking = False
        try:
            self.send("ASKING")
            self.read()
        finally:
            self.asking = True

    def read(self, seconds: float | None = None) -> Any:
        """Read a reply, for so long or as the client says. An interruption leaves it there, to be read later.

        Raises what the server answers as an error, ConnectionError, TimeoutError.
        """
        limit = self.endpoint.reply_secs if seconds is None else seconds
        has_come = False
        try:
            while (reply := self._reader.gets()) is NOTHING or type(reply) is hiredis.PushNotification:
                if reply is not NOTHING:
                    continue
                if has_come and self._reader.has_data():
                    reply = self._read_rest(min(limit, self.endpoint.reply_secs))
                    break
                self._receive(limit)
                has_come = True
        except MemoryError as error:  # a reply that says to be very large
            raise self._broken("reading from", error) from error
        self.pending_replies -= 1
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _read_rest(self, seconds: float) -> Any:
        """Read a reply that has started, within the time limit of bytes that flow (LQ-CLIENT-19)."""
        limit = TimeLimit(seconds, concurrency.now())
        while (reply := self._reader.gets()) is NOTHING or type(reply) is hiredis.PushNotification:
            if reply is NOTHING:
                size = self._reader.len()
                self._receive(seconds)
                seconds = limit.pause(self._reader.len() - size, concurrency.now())
        return reply

    def _receive(self, seconds: float) -> None:
        """Receive bytes, within this time. Raises ConnectionError, TimeoutError."""
        if self._closed:
            raise redis.ConnectionError(_CLOSED)
        try:
            if seconds != self._timeout:
                self._timeout = seconds
                if self._has_timeval:
                    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeval(seconds))
                else:
                    self._socket.settimeout(max(LEAST_SECS, seconds))
            if next(self._received, _END) is _END:
                self.has_failed = True
                raise redis.ConnectionError("the server closed the connection")
        except OSError as error:
            if isinstance(error, TimeoutError | BlockingIOError) and self._arrival_secs:
                # a large command may still be on its way
                seconds, self._arrival_secs = self._arrival_secs, 0.0
                self._receive(seconds)
                return
            raise self._broken("reading from", error) from error

    def read_within(self, seconds: float) -> Any:
        """Read a reply that may take long; what has begun within the time is read to its end. Raises ReplyTimeoutError."""
        stop = current()
        if stop is not None:
            return self._read_unless_stopped(stop, seconds)
        try:
            return self.read(seconds)
        except redis.TimeoutError:
            if self._closed:
                raise redis.ConnectionError(_CLOSED) from None
            if not self._has_begun():
                raise ReplyTimeoutError from None
        return self.read()

    def _read_unless_stopped(self, stop: Stop, seconds: float) -> Any:
        """The same, in a thread that can be interrupted."""
        stop.check()
        if not self._has_begun():
            if self._closed:
                raise redis.ConnectionError(_CLOSED)
            if not stop.wait(self._socket, seconds):
                self.has_failed = True
                raise ReplyTimeoutError
        return self.read()

    def _has_begun(self) -> bool:
        """Return whether something of a reply is here."""
        decrypted = (
            isinstance(self._socket, ssl.SSLSocket) and not self._closed and self._socket.pending() > 0
        )
        return decrypted or self._reader.has_data()

    def _broken(self, action: str, error: Exception) -> redis.RedisError:
        """The error of redis-py for one of the socket."""
        if self._closed:
            return redis.ConnectionError(_CLOSED)
        self.has_failed = True
        if isinstance(error, TimeoutError | BlockingIOError):
            return redis.TimeoutError(f"Timeout {action} {self.endpoint}")
        return redis.ConnectionError(f"Error while {action} {self.endpoint}: {error}")

    is_elsewhere = False
    """True if it belongs to another event loop, which still runs."""

    def close(self) -> None:
        """Close it: its replies are no longer wanted."""
        self._closed = True
        if hasattr(self, "_socket"):
            self._socket.close()

    def wait_closed(self) -> None:
        """Nothing is left to wait for."""

    def abort(self) -> None:
        """End it under the thread that reads, and then closes it.

        The number of a socket that is closed here may be another's by the time that thread begins to wait for it.
        """
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    @property
    def can_half_close(self) -> bool:
        """True if it can end one direction, and has only the commands in it that are sent."""
        return not self.asking and not isinstance(self._socket, ssl.SSLSocket)

    def half_close(self) -> None:
        """Send nothing more: the server ends a block and closes; what it answered before can still be read."""
        self._half_closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close_gracefully(self) -> None:
        """Close it, and wait until the server has: then no wake-up goes there any more."""
        with contextlib.suppress(OSError, redis.RedisError):
            self._socket.shutdown(socket.SHUT_WR)
            self._socket.settimeout(CLOSE_SECS)
            while self._socket.recv(_CHUNK):
                pass
        self.close()


def _look(sock: socket.socket) -> Callable[[float], object]:
    """Return a function that says whether there is something to read, if only the end; its argument is the longest wait."""
    if not hasattr(select, "poll"):
        return lambda seconds: select.select([sock], [], [], seconds)[0]
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return poll.poll


_connections: ForkGuard[Connection] = ForkGuard()
