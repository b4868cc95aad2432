# Generated from _aio/executor.py by tools/unasync.py: do not edit.
"""Runs the calls of one queue, or of several queues of one group.

A call borrows a connection, follows a cluster's redirections, and ends with an answer or a named error. It is not sent
again if it may have taken effect. Items that the caller cannot receive are released.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast

import redis

from leaseq import commands, deaths, errors
from leaseq._scripts import MAX_ENTRIES
from leaseq._sync import concurrency
from leaseq._sync.blocking import SHORTEST_BLOCK, BrokenBlockError, block_and_run, receive_abandoned
from leaseq._sync.borrower import MAX_REDIRECTS, Borrower
from leaseq._sync.connection import Connection
from leaseq._sync.lifecycle import Lifecycle
from leaseq._sync.pending_call import PendingCall
from leaseq._sync.route import NOT_CONNECTED, route
from leaseq.commands import Argument, Command, LeaseReply
from leaseq.errors import LeaseqError
from leaseq.flows import Flow, Wait
from leaseq.keys import REGISTRY, QueueKeys

T = TypeVar("T")

REGISTER_AGAIN_SECS = 300.0
"""Seconds after which a queue is registered again, for a server that lost the registry."""

REGISTRY_SECS = 1.0
"""Seconds that an attempt to register may take. The caller waits for it, so it is short."""


@dataclass(slots=True)
class Registration:
    """A queue that calls add to or lease from, and until when it need not be registered again."""

    keys: QueueKeys
    until: float = -math.inf


class Executor(Borrower):
    """Runs calls on the keys of one slot until it is closed.

    Attributes:
        client: the redis-py client that says where the server is.
        queues: those that calls add to or lease from, in the order of the call.
        life: whether it is open.
    """

    def __init__(
        self,
        client: concurrency.Client,
        key: str,
        queues: Sequence[Registration] = (),
        life: Lifecycle | None = None,
    ) -> None:
        self.client = client
        self.route = route(client)
        self.key = key
        self.queues = queues
        self.life = Lifecycle(key) if life is None else life
        self._register_at = -math.inf
        """The first time at which one of the queues is to be registered again."""

    @property
    def background(self) -> concurrency.Background:
        """Work that outlives the call that started it; closing waits for it."""
        return self.life.background

    def close(self) -> None:
        """End all waits and let other calls finish."""
        self.life.end()

    # scripts

    def run(self, command: Command[T], timeout: float | None = None) -> T:
        """Run a command and return its answer. The reply may take `timeout` seconds, by default as the client says.

        Raises `leaseq.errors`. If the caller is interrupted, items that the call leases are released.
        """
        sent_at = concurrency.now()
        until = sent_at + self.route.limit_secs
        answer: Any = None
        call: PendingCall[T] | None = None
        # as `with self.life`, which is two functions more: every call passes here
        calls, caller = self.life.calls, concurrency.caller()
        calls.append(caller)
        try:
            if self.life.closed:
                self.life.raise_if_closed("is closed")
            try:
                connection = self.route.acquire(self.key, None, until)
            except NOT_CONNECTED as error:
                raise errors.from_connection(error, sent=False) from error
            try:
                answer = connection.call(command, timeout)
            except BaseException as error:  # noqa: BLE001 (raised there)
                call = PendingCall(command, (), connection, answer=answer, until=until)
                redirection = self._redirection(error, call)
                answer, sent_at = self._run_redirected(command, timeout, redirection, until)
            finally:
                if call is None or call.connection is not None:
                    self.route.release(connection)
            if command.undo is not None:
                answer = self._deliver(command, answer, sent_at)
        finally:
            calls.remove(caller)
        if command.registers and sent_at >= self._register_at:
            self._register(command, answer)
        result: T = answer
        return result

    def wait(self, wait: Wait[T]) -> T:
        """Wait, then run the command and return its answer. A waiter that ends with an error settles (LQ-BLOCK-6)."""
        command = wait.then
        call = PendingCall(command, wait.settles, is_sent=False)
        with self.life:
            try:
                answer: Any = self._wait(wait, call)
            except BaseException:
                self._abandon(call)
                raise
            if command.undo is not None:
                answer = self._deliver(command, answer, call.sent_at)
        if command.registers and concurrency.now() >= self._register_at:
            self._register(command, answer, wait.settles)
        result: T = answer
        return result

    def drive(self, flow: Flow[T]) -> T:
        """Run the requests of a flow and return its result."""
        answer: T | None = None
        while True:
            try:
                request = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(request, Command):
                answer = self.run(request)
            elif isinstance(request, Wait):
                answer = self.wait(request)
            else:
                answer = None
                self._settle(request.settles)

    # plain commands

    def execute(self, *command: Argument) -> Any:
        """Send a plain command on keys of this slot and return its reply. Raises `leaseq.errors`."""
        return (self.execute_all([command]))[0]

    def execute_all(
        self,
        entries: Sequence[tuple[Argument, ...]],
        limit_secs: float = math.inf,
        max_waits: int = MAX_REDIRECTS,
    ) -> list[Any]:
        """Send plain commands together and return their replies. Raises the first error of all, as one of `leaseq.errors`.

        `limit_secs` bounds all of it, if it is shorter than the limit of the client. `max_waits` is how often to wait for a slot that
        has no node now.
        """
        call: PendingCall[Any] = PendingCall(until=concurrency.now() + min(limit_secs, self.route.limit_secs))

        def execute(connection: Connection) -> list[Any]:
            return _execute(connection, entries, call.reply_secs(connection))

        with self.life:
            return self._with_connection(execute, call, max_waits=max_waits)

    def run_unless_changed(
        self,
        watched: Sequence[Argument],
        look: Command[T],
        then: Callable[[T], Sequence[tuple[Argument, ...]]],
    ) -> tuple[T, list[Any] | None]:
        """Run `look`, and what `then` makes of its answer as one transaction, which is void if a watched key has changed since.

        Return the answer, and the replies in the transaction, with the errors of its commands; None if it was void, or empty.
        """
        call: PendingCall[Any] = PendingCall(until=concurrency.now() + self.route.limit_secs)

        def run(connection: Connection) -> tuple[T, list[Any] | None]:
            timeout = call.reply_secs(connection)
            try:
                _execute(connection, [("WATCH", *watched)], timeout)
                seen = connection.call(look, timeout)
                entries = then(seen)
                if not entries:
                    _execute(connection, [("UNWATCH",)], timeout)
                    return seen, None
                replies = _execute(connection, [("MULTI",), *entries, ("EXEC",)], timeout)
            except BaseException:
                connection.close()  # it may still watch
                raise
            return seen, replies[-1]

        with self.life:
            return self._with_connection(run, call)

    # behind an answer

    def _deliver(self, command: Command[T], answer: LeaseReply, sent_at: float) -> LeaseReply:
        """Return what a call leased. If the queue was closed meanwhile, release it: it could not be completed."""
        answer.sent_at = sent_at
        if self.life.closed:
            self._undo_later(command, answer)
            if not answer.completed:
                self.life.raise_if_closed()
            return replace(answer, items=[], extras={}, died={})
        for place, died in answer.died.items():
            publishing = partial(self.publish, died, place)
            self.background.begin(publishing, finish=True)
        return answer

    def _register(self, command: Command[Any], answer: Any, settles: Sequence[Command[bool]] = ()) -> None:
        """Register the queue that was added to or leased from (LQ-REGISTRY-2). An error does not concern the caller."""
        queue = self.queues[0]
        if command.undo is not None:
            if not answer.items:
                return
            queue = self.queues[answer.queue]
        now = concurrency.now()
        if now >= queue.until:
            queue.until = now + REGISTER_AGAIN_SECS
            registry = Executor(self.client, REGISTRY, life=self.life)
            entry = ("SADD", REGISTRY, queue.keys.entry)
            try:
                with contextlib.suppress(LeaseqError):  # the queue works also if the registry has no node now
                    registry.execute_all([entry], REGISTRY_SECS, max_waits=0)
            except BaseException:
                self._undo_later(command, answer, settles)
                raise
        self._register_at = min([each.until for each in self.queues])

    def unregister(self) -> None:
        """Take the queue out of the registry (LQ-DELETE-3). An error does not concern the caller. The next call that adds or leases enters it again."""
        queue = self.queues[0]
        registry = Executor(self.client, REGISTRY, life=self.life)
        with contextlib.suppress(LeaseqError):
            registry.execute_all([("SREM", REGISTRY, queue.keys.entry)], REGISTRY_SECS, max_waits=0)
        self._register_at = queue.until = -math.inf

    def publish(self, died: Sequence[str], queue: int = 0) -> None:
        """Publish and log the failures of items that died in an earlier call, whose script cannot publish them (LQ-CLIENT-8).

        Errors are ignored. A caller that waits for such an outcome asks again within the wait cap. `queue` is the place of
        the queue of the items.
        """
        keys = self.queues[queue].keys
        open_still, rest = Executor(self.client, self.key), list(died)
        while rest:
            answered = len(rest)  # after an error a caller that waits asks again
            with contextlib.suppress(LeaseqError):
                outcomes = open_still.run(commands.outcome(keys, rest[:MAX_ENTRIES]))
                deaths.log(keys, outcomes)
                answered = max(1, len(outcomes))
            rest = rest[answered:]

    def run_later(self, due: Sequence[Command[Any]]) -> None:
        """Run commands in the background, for an answer that arrived too late. A program that exits waits for them."""
        if due:
            self.background.begin(partial(self._run_quietly, due), finish=True)

    def _undo_later(self, command: Command[Any], answer: Any, settles: Sequence[Command[bool]] = ()) -> None:
        """Release what a call leased, and settle behind that (LQ-BLOCK-15)."""
        released = () if command.undo is None else command.undo(answer)
        self.run_later([*released, *settles])

    def _run_quietly(self, due: Sequence[Command[Any]]) -> None:
        """Run commands one after the other, also on a closed queue. Errors of leaseq are ignored."""
        open_still = Executor(self.client, self.key)
        for command in due:
            with contextlib.suppress(LeaseqError):
                open_still.run(command)

    def _settle(self, settles: Sequence[Command[bool]]) -> None:
        """Settle for a waiter that leaves without an item."""
        if self.life.closed:
            return
        try:
            self._run_quietly(settles)
        except BaseException:
            self._settle_later(settles)
            raise

    def _settle_later(self, settles: Sequence[Command[bool]]) -> None:
        if settles:
            # without a thread for it, another waiter looks within the wait cap
            with contextlib.suppress(LeaseqError):
                self.background.begin(partial(self._run_quietly, settles))

    def _abandon(self, call: PendingCall[Any]) -> None:
        """The caller is gone: what is on its way to it goes back, and a wake-up that was taken is passed on."""
        connection, command, answer = call.connection, call.command, call.answer
        settles, call.settles, call.answer = call.settles, (), None
        undo = None if command is None else command.undo
        if answer is not None and undo is not None:
            self.run_later([*undo(answer), *settles])  # one after the other (LQ-BLOCK-15)
            return
        if connection is not None and connection.pending_replies and (undo or settles):
            call.connection = None
            self.background.begin(partial(self._finish_abandoned, call, connection, settles), finish=True)
            return
        self._settle_later(settles)

    def _finish_abandoned(
        self, call: PendingCall[Any], connection: Connection, settles: Sequence[Command[bool]]
    ) -> None:
        """End an interrupted call so that nothing is lost: items that it still brings are released."""
        try:
            answer = receive_abandoned(call, connection)
            if answer is not None and call.command is not None and call.command.undo is not None:
                self._run_quietly(call.command.undo(answer))
        finally:
            self.route.release(connection)
        self._run_quietly(settles)

    # a connection for a call

    def _run_redirected(
        self, command: Command[T], timeout: float | None, redirection: redis.ResponseError, until: float
    ) -> tuple[T, float]:
        """Return the answer of a command that a cluster redirected, and when it was sent."""
        call = PendingCall(command, until=until)
        try:
            return self._run_at(call, timeout, redirection), call.sent_at
        except BaseException:
            self._abandon(call)
            raise

    def _run_at(
        self, call: PendingCall[T], timeout: float | None, redirection: redis.ResponseError | None = None
    ) -> T:
        """Run a command where a redirection leads."""

        def run(connection: Connection) -> T:
            call.is_sent, call.sent_at = True, concurrency.now()
            return connection.call(cast("Command[T]", call.command), call.reply_secs(connection, timeout))

        return self._with_connection(run, call, redirection)

    def _wait(self, wait: Wait[T], call: PendingCall[T]) -> T:
        pause = wait.seconds
        if pause >= SHORTEST_BLOCK:
            try:
                return self._block_and_run(wait, call)
            except BrokenBlockError as broken:
                pause = min(pause, broken.pause)
        concurrency.sleep(max(0.0, pause))
        call.until = concurrency.now() + self.route.limit_secs
        return self._run_at(call, None)

    def _block_and_run(self, wait: Wait[T], call: PendingCall[T]) -> T:
        """Block, then run the command on the same connection. Raises BrokenBlockError if the command was not run."""
        call.until = concurrency.now() + self.route.limit_secs
        connection = call.connection = self._acquire(None, call)
        try:
            call.answer = answer = block_and_run(wait, call, connection, self.life, self.route.redirects)
        except BrokenBlockError:
            raise
        except BaseException as error:
            self._redirection(error, call)
            raise
        finally:
            self._return(call)
        return answer


def _execute(connection: Connection, entries: Sequence[tuple[Argument, ...]], timeout: float) -> list[Any]:
    """Send plain commands together and return their replies. Raises the first error of all."""
    replies: list[Any] = []
    for entry in entries:
        connection.send(*entry)
    while len(replies) < len(entries):
        try:
            replies.append(connection.read(timeout))
        except redis.ResponseError as error:
            replies.append(error)
    for reply in replies:
        if isinstance(reply, redis.ResponseError):
            raise reply
    return replies
