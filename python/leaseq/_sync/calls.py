# Generated from _aio/calls.py by python/unasync.py: do not edit.
"""Calls of scripts on one server.

One round trip each, the script's text sent only where it is unknown, never a retry of what may have taken effect.
"""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import redis
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MasterDownError,
    NoScriptError,
    ReadOnlyError,
    RedisClusterException,
    TryAgainError,
)

from leaseq import errors
from leaseq._sync import concurrency
from leaseq._sync.connection import Connection, ReplyTimeoutError
from leaseq._sync.route import route
from leaseq.commands import Argument, Command, pack
from leaseq.flows import REPLY_GRACE

T = TypeVar("T")

REDIRECTIONS = 12
"""How often a call follows a cluster's redirections, or waits for a slot that migrates, before it fails."""


NOT_CONNECTED = (redis.RedisError, RedisClusterException, OSError)
"""How opening a connection fails."""


ELSEWHERE = (AskError, TryAgainError, ClusterDownError)
"""How a cluster says that the slot is or goes elsewhere. redis-py derives MOVED from ASK, and MASTERDOWN from CLUSTERDOWN."""


def is_elsewhere(error: Exception) -> bool:
    """Whether a cluster says that the slot is or goes elsewhere."""
    return isinstance(error, ELSEWHERE) and not isinstance(error, MasterDownError)


class CallState:
    """What a conversation holds.

    Attributes:
        detached: whether another task has taken over its connection, and releases it.
        answer: the answer, which is not returned yet.
    """

    detached = False
    answer: Any = None


class Calls:
    """Calls on the keys of one slot, each within the `life` of its owner."""

    life: contextlib.AbstractContextManager[None] = contextlib.nullcontext()

    def __init__(self, client: concurrency.Client, key: str) -> None:
        self.route = route(client)
        self.key = key

    def run(self, command: Command[T], timeout: float | None = None) -> T:
        """Run a command; its reply may take `timeout` seconds, or what the client grants. Raises `leaseq.errors`."""
        with self.life:
            try:
                connection = self.route.acquire(self.key, None)
            except NOT_CONNECTED as error:
                connection = self._acquire_after(error)
            try:
                connection.send_packed(command.packed or pack(command.evalsha()))
                reply = connection.read(timeout)
            except BaseException as error:  # noqa: BLE001 (raised there)
                reply = self._run_after(error, connection, command, timeout)
            finally:
                self.route.release(connection)
        return command.parse(reply)

    def execute(self, *command: Argument, timeout: float | None = REPLY_GRACE) -> Any:
        """What the server answers to a plain command on keys of this slot; see `run`."""
        return (self.execute_all([command], timeout))[0]

    def execute_all(
        self, entries: Sequence[tuple[Argument, ...]], timeout: float | None = REPLY_GRACE
    ) -> list[Any]:
        """Send plain commands together; the answers of all. Raises the first error of all, as one of `leaseq.errors`."""
        with self.life:
            return self.talk(partial(self._execute, entries, timeout), CallState())

    def _execute(
        self, entries: Sequence[tuple[Argument, ...]], timeout: float | None, connection: Connection
    ) -> list[Any]:
        replies: list[Any] = []
        refusal: redis.ResponseError | None = None
        try:
            for entry in entries:
                connection.send(*entry)
            while len(replies) < len(entries):
                try:
                    replies.append(connection.read(timeout))
                except redis.ResponseError as error:
                    replies.append(error)
                    refusal = refusal or error
        except BaseException as error:
            self.raise_named(error, connection)
            raise
        if refusal is not None:
            self.raise_named(refusal, connection)
            raise refusal
        return replies

    def talk(
        self,
        conversation: Callable[[Connection], T],
        state: CallState,
        error: redis.ResponseError | None = None,
    ) -> T:
        """Borrow a connection for a conversation; repeat what a cluster redirected, since that was not run.

        With an `error` it has been led once, and a cluster redirected it.
        """
        redirection: AskError | None = None
        hops = waits = 0
        while hops < REDIRECTIONS:
            if error is None:
                connection = self._acquire(redirection, hops + waits)
                state.detached = False
                try:
                    answer = state.answer = conversation(connection)
                except ELSEWHERE as elsewhere:
                    error = elsewhere
                else:
                    return answer
                finally:
                    if not state.detached:
                        self.route.release(connection)
            if isinstance(error, AskError):
                redirection, hops = error, hops + 1
            else:
                # while a slot migrates, its old node may send us on to the new one, which lacks a key and says TRYAGAIN
                redirection, hops, waits = None, 0, waits + 1
                if waits == REDIRECTIONS:
                    raise errors.from_server(error) from error
                concurrency.sleep(0.02 * 2 ** min(waits - 1, 6))
            error = None
        raise errors.ServerError("the cluster redirects this call in a circle; nothing was done")

    def _acquire(self, redirection: AskError | None, attempt: int) -> Connection:
        """A connection to the keys, or to where a redirection leads. Raises `leaseq.errors`."""
        try:
            return self.route.acquire(self.key, redirection)
        except NOT_CONNECTED as error:
            if attempt > 0:
                raise errors.from_connection(error, sent=False) from error
            return self._acquire_after(error)

    def _acquire_after(self, error: Exception) -> Connection:
        """A connection, after the first try failed. Raises `leaseq.errors`."""
        if not self.route.redirects:
            raise errors.from_connection(error, sent=False) from error
        # A node of the cluster is gone: the node that took its place may be known by now.
        try:
            self.route.refresh()
            return self.route.acquire(self.key, None)
        except NOT_CONNECTED as again:
            raise errors.from_connection(again, sent=False) from again

    def _exchange(self, command: Command[Any], timeout: float | None, connection: Connection) -> Any:
        try:
            connection.send_packed(command.packed or pack(command.evalsha()))
            return connection.read(timeout)
        except BaseException as error:  # noqa: BLE001 (raised there)
            return self._answer_after(error, connection, command, timeout)

    def _answer_after(
        self, error: BaseException, connection: Connection, command: Command[Any], timeout: float | None
    ) -> Any:
        """Send a command with its text, because the server did not know its digest. Raises any other error."""
        try:
            if not isinstance(error, NoScriptError):
                raise error  # noqa: TRY301 (as any other)
            connection.send(*command.eval())
            return connection.read(timeout)
        except BaseException as latest:
            self.raise_named(latest, connection)
            raise

    def _run_after(
        self, error: BaseException, connection: Connection, command: Command[Any], timeout: float | None
    ) -> Any:
        """What a command answers after all, whose first try ended with an error. Raises `leaseq.errors`."""
        try:
            return self._answer_after(error, connection, command, timeout)
        except ELSEWHERE as elsewhere:
            return self.talk(partial(self._exchange, command, timeout), CallState(), elsewhere)

    def redirected(self, error: Exception) -> bool:
        """Whether `talk` is to repeat what was answered with this error."""
        return self.route.redirects and is_elsewhere(error)

    def refused(self, error: redis.RedisError) -> errors.LeaseqError:
        """The named error for an error reply. Behind READONLY the next call looks for the new primary (3.7)."""
        if isinstance(error, ReadOnlyError):
            with contextlib.suppress(redis.RedisError, RedisClusterException, OSError):
                self.route.refresh()
        return errors.from_server(error)

    def raise_named(
        self, error: BaseException, connection: Connection, interrupted: Callable[[], None] | None = None
    ) -> None:
        """Raise an error of a conversation in which one command is sent under its name; leaves no reply on its way.

        What has no name, since it is for `talk` or is an interruption, is the caller's to raise again.
        """
        if isinstance(error, redis.ResponseError):
            if not self.redirected(error):
                raise self.refused(error) from error
        elif isinstance(error, redis.RedisError | OSError | ReplyTimeoutError):
            connection.close()
            raise errors.from_connection(error, sent=True) from error
        elif interrupted is None:
            connection.close()
        else:
            interrupted()
