"""Borrows connections for calls, follows a cluster's redirections, and names errors."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import redis
from redis.exceptions import AskError, ReadOnlyError

from leaseq import errors
from leaseq._aio import concurrency
from leaseq._aio.blocking import is_elsewhere
from leaseq._aio.connection import Connection, ReplyTimeoutError
from leaseq._aio.pending_call import PendingCall
from leaseq._aio.route import NOT_CONNECTED, Route
from leaseq.errors import LeaseqError

T = TypeVar("T")

MAX_REDIRECTS = 12
"""Redirections of a cluster that a call follows, and waits for a slot that migrates, before it fails."""


class Borrower:
    """Has connections for calls on the keys of one slot.

    Attributes:
        route: the connections to the server.
        key: one key of the slot.
    """

    route: Route
    key: str

    def _abandon(self, call: PendingCall[Any]) -> None:
        """Undo a call whose caller is gone."""
        raise NotImplementedError

    async def _with_connection(
        self,
        use: Callable[[Connection], Awaitable[T]],
        call: PendingCall[Any],
        redirection: redis.ResponseError | None = None,
        max_waits: int = MAX_REDIRECTS,
    ) -> T:
        """Borrow a connection and use it; again if a cluster redirects the call, since it was not run.

        `redirection` is what a first try was answered.
        """
        hops = waits = 0
        while hops < MAX_REDIRECTS:
            if redirection is not None and concurrency.now() >= call.until:
                raise errors.from_server(redirection) from redirection
            if redirection is not None and not isinstance(redirection, AskError):
                # while a slot migrates, its old node may send us on to the new one, which lacks a key and says TRYAGAIN
                pause = 0.02 * 2 ** min(waits, 6)
                if waits == max_waits or concurrency.now() + pause >= call.until:
                    raise errors.from_server(redirection) from redirection
                await concurrency.sleep(pause)
                redirection, hops, waits = None, 0, waits + 1
            call.connection = await self._acquire(redirection, call)
            try:
                call.answer = answer = await use(call.connection)
            except BaseException as error:  # noqa: BLE001 (raised there)
                redirection = await self._redirection(error, call)
            else:
                return answer
            finally:
                self._return(call)
            hops += 1
        raise errors.ServerError("the cluster redirects this call in a circle; nothing was done")

    async def _redirection(self, error: BaseException, call: PendingCall[Any]) -> redis.ResponseError:
        """Return the error if a cluster redirects the call. Raise any other error by its name, an interruption as it is."""
        try:
            if isinstance(error, redis.ResponseError):
                if self.route.redirects and is_elsewhere(error):
                    return error
                raise await self._refused(error, call.until) from error
            if isinstance(error, redis.RedisError | OSError | ReplyTimeoutError):
                if call.connection is not None:
                    call.connection.close()
                raise errors.from_connection(error, sent=True) from error
            if not isinstance(error, LeaseqError):
                self._abandon(call)
            raise error
        finally:
            del error  # whose traceback has this frame: a connection held in such a circle would stay

    async def _refused(self, error: redis.RedisError, until: float) -> LeaseqError:
        """Return the named error for an error reply. Behind READONLY the next call looks for the new primary (3.7)."""
        if isinstance(error, ReadOnlyError):
            self.route.forget()
        named = errors.from_server(error)
        if type(named) is errors.ServerError and not named.definite and not await self._runs_scripts(until):
            return errors.NoScriptsError(
                "the server runs no Lua scripts, nothing was done: load the Lua module of Valkey, start Garnet with --lua,"
                " do not rename EVAL and EVALSHA, or take Redis 6.2 or later"
            )
        return named

    async def _runs_scripts(self, until: float) -> bool:
        """Ask the server whether it runs a script of no commands: error texts differ between servers (LQ-ERROR-6)."""
        connection = None
        try:
            connection = await self.route.acquire(self.key, None, until)
            await connection.send("EVAL", "return 1", "0")
            await connection.read()
        except redis.ResponseError as error:
            # an error with a code is about the user or this moment
            return type(error) is not redis.ResponseError
        except (*NOT_CONNECTED, ReplyTimeoutError):
            if connection is not None:
                connection.close()
        finally:
            if connection is not None:
                self.route.release(connection)
        return True

    async def _acquire(self, redirection: redis.ResponseError | None, call: PendingCall[Any]) -> Connection:
        """Return a connection to the node that has the keys, or to where a redirection leads. Raises `leaseq.errors`."""
        try:
            return await self.route.acquire(self.key, cast("AskError | None", redirection), call.until)
        except NOT_CONNECTED as error:
            raise errors.from_connection(error, sent=False) from error

    def _return(self, call: PendingCall[Any]) -> None:
        """Return the connection, unless a background task has it now."""
        connection, call.connection = call.connection, None
        if connection is not None:
            self.route.release(connection)
