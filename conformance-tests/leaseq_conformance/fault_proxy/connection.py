"""One connection through the proxy, and the link that it is part of."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from leaseq_conformance import resp
from leaseq_conformance.fault_proxy import one_node
from leaseq_conformance.fault_proxy.command import DeferredReply
from leaseq_conformance.fault_proxy.link_faults import LinkFaults

if TYPE_CHECKING:
    from collections.abc import Callable

    from leaseq_conformance.fault_proxy.breakpoints import Breakpoint
    from leaseq_conformance.fault_proxy.command import Command
    from leaseq_conformance.fault_proxy.command_log import CommandLog

RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER for a close with RST instead of FIN."""
_POLL_SECS: Final = 0.002
"""Pause between two checks of a held connection whether it may go on."""


class Link(LinkFaults):
    """The link between one client and the server, which all connections of the client share.

    Attributes:
        log: what their commands are written into.
        client: the client's name; after a change, commands have the new name on them.
        port: where the client connects.
        kill: ends the client.
        is_opaque: whether bytes are passed on as they come, and not looked through for commands: for TLS, and for long runs.
        has_every_slot: whether it answers CLUSTER in the server's place, as a cluster of one node on this port.
    """

    def __init__(self, log: CommandLog, client: str, port: int) -> None:
        super().__init__()
        self.log = log
        self.client = client
        self.port = port
        self.kill: Callable[[], object] = lambda: None
        self.is_opaque = False
        self.has_every_slot = False


class ProxiedConnection:
    """A connection through the proxy: one thread for commands, one for replies. `on_end` is called with it at its end."""

    def __init__(
        self,
        link: Link,
        client: socket.socket,
        server: socket.socket,
        on_end: Callable[[ProxiedConnection], object],
    ) -> None:
        self._link = link
        self._client = client
        self._server = server
        self._on_end = on_end
        self.address = ":".join(map(str, server.getsockname()[:2]))
        """Its end at the server, as CLIENT LIST names it; of a Unix socket something else."""
        self._number = number = link.log.connection_number()
        self._unanswered: deque[tuple[Command, Breakpoint | None]] = deque()
        self._lock = threading.Lock()
        self._delivering = False
        self._is_deaf = self._is_mute = False
        """Of an opaque one: TCP never swallows some bytes and delivers later ones."""
        self._ended = threading.Event()
        self._held: set[Breakpoint] = set()
        self._threads = [
            threading.Thread(target=self._run, args=(part,), name=f"{link.client}/{number}", daemon=True)
            for part in (self._forward_commands, self._forward_replies)
        ]
        self._left = len(self._threads)

    def start(self) -> None:
        """Start its threads."""
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait for the end of its threads."""
        for thread in self._threads:
            thread.join()

    def reset(self) -> None:
        """Reset both sides; returns before it has happened."""
        self._ended.set()
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RD)  # wakes the thread that reads; the last one closes both
        for point in list(self._held):
            point.disconnect()

    def _run(self, part: Callable[[], None]) -> None:
        try:
            part()
        except OSError:
            self.reset()
        finally:
            with self._lock:
                self._left -= 1
                last = self._left == 0
            if last:
                self._client.close()
                self._server.close()
                self._on_end(self)

    def _forward_commands(self) -> None:
        stream = resp.Stream()
        while data := self._receive(self._client):
            self._link.count_from_client(len(data))
            self._wait(self._link.delay())
            if self._link.is_opaque:
                self._pass_on(data)
                continue
            stream.feed(data)
            while (frame := stream.frame()) is not None:
                self._command(frame)
        with contextlib.suppress(OSError):  # the server has closed it
            self._server.shutdown(socket.SHUT_WR)  # a client that sends nothing more may still read

    def _forward_replies(self) -> None:
        stream = resp.Stream()
        while data := self._receive(self._server):
            self._wait(self._link.delay())
            if self._link.is_opaque:
                self._is_mute = self._is_mute or not self._deliver(data)
                continue
            stream.feed(data)
            while (frame := stream.frame()) is not None:
                self._reply(frame)
        with contextlib.suppress(OSError):  # the client has closed it
            self._client.shutdown(socket.SHUT_RDWR)  # wakes the other thread too

    def _pass_on(self, data: bytes) -> None:
        """Send the server bytes of the client through the faults of the link, whatever they say."""
        self._hold_while(lambda: self._link.hold_commands)
        self._is_deaf = self._is_deaf or self._link.discard_commands
        if not self._is_deaf:
            self._send(self._server, data)

    def _command(self, frame: bytes) -> None:
        link, arguments = self._link, resp.arguments(frame)
        command, points = link.log.record(link.client, self._number, arguments, link.port)
        if link.has_every_slot:
            command.outgoing = one_node.reply(arguments, link.port)
        for point in points:
            if point.when == "before":
                self._stop_at(point, command)
        self._hold_while(lambda: link.hold_commands)
        if link.discard_commands:
            return
        with self._lock:
            after = next((point for point in points if point.when == "after"), None)
            self._unanswered.append((command, after))
            if command.outgoing is None and command.deferred is None:
                self._send(self._server, frame)
                command.sent = True
        self._deliver_in_order()
        if command.deferred is not None:
            command.deferred.bind(lambda reply: self._give(command, reply))

    def _give(self, command: Command, reply: bytes) -> None:
        command.outgoing = reply
        try:
            self._deliver_in_order()
        except OSError:
            self.reset()

    def _reply(self, frame: bytes) -> None:
        with self._lock:
            unanswered = (pair for pair in self._unanswered if pair[0].sent and pair[0].reply is None)
            command, point = next(unanswered, (None, None))
        if resp.is_push(frame) or command is None:
            self._deliver(frame)
            return
        command.reply = frame
        if point is not None:
            self._stop_at(point, command)
        if command.outgoing is None:
            command.outgoing = frame
        self._deliver_in_order()

    def _deliver_in_order(self) -> None:
        """Send the client the replies that are known, in the order of their commands.

        One thread does so at a time, without the lock, so that commands pass while a reply is held.
        """
        while True:
            with self._lock:
                first = self._unanswered[0][0] if self._unanswered else None
                if self._delivering or first is None or first.outgoing is None:
                    return
                self._unanswered.popleft()
                self._delivering = True
            try:
                if self._deliver(first.outgoing):
                    first.delivered = first.outgoing
            finally:
                with self._lock:
                    self._delivering = False

    def _deliver(self, data: bytes) -> bool:
        """Send the client bytes of the server through the faults of the link; returns whether it got them."""
        link = self._link
        if link.discard_replies or self._is_mute:
            return False
        for part, is_held in zip(link.split_held(data), (False, True), strict=True):
            if is_held and part:
                self._hold_while(lambda: link.hold_replies_after is not None)
            part, cut = link.split_cut(part) if part else (part, False)  # noqa: PLW2901
            self._send(self._client, part)
            if cut:
                raise ConnectionResetError
        return True

    def _receive(self, side: socket.socket) -> bytes:
        data = side.recv(65536)
        if self._ended.is_set():
            raise ConnectionResetError
        return data

    def _send(self, side: socket.socket, data: bytes) -> None:
        """Send it all, unless the connection is reset meanwhile."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[side.send(rest, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                select.select([], [side], [], _POLL_SECS)
                self._wait(0)

    def _stop_at(self, point: Breakpoint, command: Command) -> None:
        self._held.add(point)
        try:
            action = point.stop(command)
        finally:
            self._held.discard(point)
        self._wait(0)
        if isinstance(action, bytes):
            command.outgoing = action
        elif isinstance(action, DeferredReply):
            command.deferred = action
        elif action in {"disconnect", "kill"}:
            if action == "kill":
                self._link.kill()
            raise ConnectionResetError

    def _wait(self, seconds: float) -> None:
        if self._ended.wait(seconds):
            raise ConnectionResetError

    def _hold_while(self, held: Callable[[], bool]) -> None:
        while held():
            self._wait(_POLL_SECS)
