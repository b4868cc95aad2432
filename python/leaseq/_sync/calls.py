# Generated from _aio/calls.py by python/unasync.py: do not edit.
"""Calls of scripts on one server.

One round trip each, the script's text sent only where it is unknown, never a retry of what may have taken effect.
"""

import contextlib
from collections.abc import Callable
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
from leaseq._sync import io
from leaseq._sync.connection import Connection, ReplyTimeoutError
from leaseq._sync.route import route
from leaseq.commands import Command

T = TypeVar("T")

REDIRECTIONS = 12
"""How often a call follows a cluster's redirections, or waits for a slot that migrates, before it fails."""


def is_elsewhere(error: Exception) -> bool:
    """Whether a cluster says that the slot is or goes elsewhere. redis-py derives MASTERDOWN from CLUSTERDOWN."""
    said = isinstance(error, AskError | TryAgainError | ClusterDownError)
    return said and not isinstance(error, MasterDownError)


class Held:
    """What a conversation held when it was interrupted."""

    connection: Connection | None = None
    answer: Any = None


class Calls:
    """Calls on the keys of one slot."""

    def __init__(self, client: io.Client, key: str) -> None:
        self.route = route(client)
        self._key = key

    def run(self, command: Command[T], patience: float | None = None) -> T:
        """Run a command; its reply may take `patience` seconds, or what the client grants. Raises `leaseq.errors`."""
        return command.parse(self.talk(partial(self._exchange, command, patience), Held()))

    def talk(self, conversation: Callable[[Connection], T], held: Held) -> T:
        """Borrow a connection for a conversation; repeat what a cluster redirected, since that was not run."""
        redirection: AskError | None = None
        hops = waits = 0
        while hops < REDIRECTIONS:
            connection = held.connection = self._acquire(redirection, hops + waits)
            try:
                answer = held.answer = conversation(connection)
            except AskError as error:
                redirection, hops = error, hops + 1
                continue
            except (TryAgainError, ClusterDownError) as error:
                # while a slot migrates, its old node may send us on to the new one, which lacks a key and says TRYAGAIN
                redirection, hops, waits = None, 0, waits + 1
                if waits == REDIRECTIONS:
                    raise errors.from_server(error) from error
            else:
                return answer
            finally:
                if not connection.detached:
                    self.route.release(connection)
            io.sleep(0.02 * 2 ** min(waits - 1, 6))
        message = "the cluster redirects this call in a circle; nothing was done"
        raise errors.ServerError(message)

    def _acquire(self, redirection: AskError | None, attempt: int) -> Connection:
        try:
            return self.route.acquire(self._key, redirection)
        except (redis.RedisError, redis.exceptions.RedisClusterException, OSError) as error:
            if not self.route.redirects or attempt > 0:
                raise errors.from_connection(error, sent=False) from error
        # A node of the cluster is gone: whoever took its place may be known by now.
        try:
            self.route.refresh()
            return self.route.acquire(self._key, None)
        except (redis.RedisError, redis.exceptions.RedisClusterException, OSError) as error:
            raise errors.from_connection(error, sent=False) from error

    def _exchange(self, command: Command[Any], patience: float | None, connection: Connection) -> Any:
        try:
            if command.packed is None:
                connection.send(*command.evalsha())
            else:
                connection.send_packed(command.packed)
            try:
                return connection.read(patience)
            except NoScriptError:
                connection.send(*command.eval())
                return connection.read(patience)
        except BaseException as error:
            self.told(error, connection)
            raise

    def redirected(self, error: Exception) -> bool:
        """Whether `talk` is to repeat what was answered with this error."""
        return self.route.redirects and is_elsewhere(error)

    def refused(self, error: redis.RedisError) -> errors.LeaseqError:
        """The named error for an error reply. Behind READONLY the next call looks for the new primary (3.7)."""
        if isinstance(error, ReadOnlyError):
            with contextlib.suppress(redis.RedisError, RedisClusterException, OSError):
                self.route.refresh()
        return errors.from_server(error)

    def told(
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
