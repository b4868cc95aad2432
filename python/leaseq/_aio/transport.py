"""Runs commands on a server.

One round trip each, the script's text sent only where it is unknown, never a retry of what may have taken effect, and
nothing lost when a waiter is interrupted.
"""

import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import redis
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    NoScriptError,
    ReadOnlyError,
    TryAgainError,
)

from leaseq import commands, errors
from leaseq._aio import io
from leaseq.commands import Command, LeaseReply
from leaseq.flows import Leave, Wait
from leaseq.item import LeasedItemBase
from leaseq.keys import QueueKeys

T = TypeVar("T")

MIGRATION_PAUSE = 0.1
"""Seconds between the leases of a waiter while its slot migrates: a BLPOP is redirected at once then."""

BLOCK_EARLY = 0.02
"""How much too early a block may end by itself. One that ends earlier was ended by CLIENT UNBLOCK: lease at once."""

SHORTEST_BLOCK = 0.01
"""Below this Redis 6.2 may block for ever (LQ-BLOCK-3)."""

REPLY_GRACE = 5.0
"""Seconds that a reply may take once a block should be over; then the connection is given up."""

REDIRECTIONS = 12
"""How often a call follows a cluster's redirections, or waits for a slot that migrates, before it fails."""


class _BrokenWaitError(Exception):
    """The block ended in an error before a lease was answered: lease again, after a pause."""

    def __init__(self, pause: float) -> None:
        super().__init__()
        self.pause = pause


class _Held:
    """What a call holds."""

    wire: io.Wire | None = None
    answer: Any = None


class Transport:
    """Runs the commands of one queue."""

    def __init__(self, client: io.Client, keys: QueueKeys, *, owned: bool) -> None:
        self.client = client
        self._keys = keys
        self._owned = owned
        self._route = io.route(client)
        self._waiting: set[io.Wire] = set()
        self._guard = io.Guard()
        self.background = io.Background()
        self.closed = False

    async def run(self, command: Command[T]) -> T:
        """Run a command. Raises the errors of `leaseq.errors`."""
        if self.closed:
            message = f"queue {self._keys.name!r} is closed"
            raise errors.QueueClosedError(message)
        return await self._run(command)

    async def perform(self, request: Command[LeaseReply] | Wait | Leave) -> LeaseReply | None:
        """Do what a lease flow asks. What an interrupted lease took is given back at once, uncounted."""
        if self.closed:
            message = f"queue {self._keys.name!r} is closed"
            raise errors.QueueClosedError(message)
        if isinstance(request, Leave):
            await self._talk(partial(self._exchange, request.settle), waiter=True)
            return None
        if isinstance(request, Command):
            return await self._talk(partial(self._take, request))
        pause = request.seconds
        if pause >= SHORTEST_BLOCK:
            try:
                return await self._talk(partial(self._wait, request), waiter=True)
            except _BrokenWaitError as broken:
                pause = min(pause, broken.pause)
        await self._talk_later(pause)
        return await self._talk(partial(self._take, request.lease), waiter=True)

    async def close(self) -> None:
        """End all waits, and the client if it is ours."""
        if self.closed:
            return
        self.closed = True
        waiting = list(self._waiting)
        for wire in waiting:
            with self._guard:  # a wire that is no longer waiting may be somebody else's connection by now
                if wire in self._waiting:
                    await wire.cut()
        if waiting:
            await self._pass_on()
        # what interrupted leases still bring is given back first
        await self.background.end(REPLY_GRACE)
        if self._owned:
            await io.close(self.client)

    async def _run(self, command: Command[T]) -> T:
        return command.parse(await self._talk(partial(self._exchange, command)))

    async def _talk(self, conversation: Callable[[io.Wire], Awaitable[T]], *, waiter: bool = False) -> T:
        """Borrow a connection for a conversation, and follow a cluster's redirections.

        What an interruption finds outside of the conversation is not lost either: leased items on the way to the caller,
        and the wake-up that a waiter may have taken.
        """
        held = _Held()
        try:
            return await self._follow(conversation, held)
        except Exception:
            raise
        except BaseException:
            if isinstance(held.answer, LeaseReply) and held.answer.items:
                self.background.begin(partial(self._give_back, held.answer), finish=True)
            elif waiter and (held.wire is None or not held.wire.kept):
                self.background.begin(self._pass_on)
            raise

    async def _follow(self, conversation: Callable[[io.Wire], Awaitable[T]], held: "_Held") -> T:
        """Repeat what was redirected: that was not run."""
        redirection: AskError | None = None
        hops = waits = 0
        while hops < REDIRECTIONS:
            wire = held.wire = await self._borrow(redirection, hops + waits)
            try:
                answer = held.answer = await conversation(wire)
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
                if not wire.kept:
                    await wire.give_back()
            await io.sleep(0.02 * 2 ** min(waits - 1, 6))
        message = "the cluster redirects this call in a circle; nothing was done"
        raise errors.ServerError(message)

    async def _talk_later(self, pause: float) -> None:
        """Wait without a connection."""
        try:
            await io.sleep(pause)
        except BaseException:
            self.background.begin(self._pass_on)
            raise

    async def _pass_on(self) -> None:
        """Settle for a waiter that is gone."""
        with contextlib.suppress(errors.LeaseqError):
            await self._run(commands.settle(self._keys))

    async def _borrow(self, redirection: AskError | None, attempt: int) -> io.Wire:
        key = self._keys.key("state")
        try:
            return await self._route.borrow(key, redirection)
        except (redis.RedisError, redis.exceptions.RedisClusterException, OSError) as error:
            if not self._route.redirects or attempt > 0:
                raise errors.from_connection(error, sent=False) from error
        # A node of the cluster is gone: whoever took its place may be known by now.
        try:
            await self._route.refresh()
            return await self._route.borrow(key, None)
        except (redis.RedisError, redis.exceptions.RedisClusterException, OSError) as error:
            raise errors.from_connection(error, sent=False) from error

    async def _exchange(self, command: Command[Any], wire: io.Wire) -> Any:
        """Send a command, read its reply."""
        try:
            await wire.send(*command.evalsha())
            try:
                return await wire.read()
            except NoScriptError:
                await wire.send(*command.eval())
                return await wire.read()
        except (AskError, TryAgainError, ClusterDownError) as error:
            raise self._redirection(error) from error
        except redis.ResponseError as error:
            raise errors.from_server(error) from error
        except (redis.RedisError, OSError) as error:
            await wire.cut()
            raise errors.from_connection(error, sent=True) from error
        except BaseException:
            await wire.cut()
            raise

    async def _take(self, lease: Command[LeaseReply], wire: io.Wire) -> LeaseReply:
        """A lease that does not wait."""
        try:
            return await self._taken(lease, wire, await self._ask(lease, wire))
        except (AskError, TryAgainError, ClusterDownError) as error:
            raise self._redirection(error) from error
        except redis.ResponseError as error:
            raise errors.from_server(error) from error
        except (redis.RedisError, OSError, io.NothingYetError) as error:
            await wire.cut()
            raise errors.from_connection(error, sent=True) from error
        except BaseException:
            self._leave_behind(wire, lease, asked=True)
            raise

    async def _ask(self, lease: Command[LeaseReply], wire: io.Wire) -> float:
        """Send a lease; answers when."""
        asked_at = io.now()
        await wire.send(*lease.evalsha())
        return asked_at

    async def _taken(self, lease: Command[LeaseReply], wire: io.Wire, asked_at: float) -> LeaseReply:
        try:
            reply = await wire.read_within(REPLY_GRACE)
        except NoScriptError:
            await wire.send(*lease.eval())
            reply = await wire.read_within(REPLY_GRACE)
        return lease.parse(reply)._replace(asked=asked_at)

    async def _wait(self, wait: Wait, wire: io.Wire) -> LeaseReply:
        """Block until a wake-up or the time, then lease on the same connection.

        That also makes the server notice a block that is over, up to 100 ms before it would by itself.
        """
        asked = False
        with self._guard:
            self._waiting.add(wire)
        try:
            blocked = await self._block(wait, wire)
            asked = True
            asked_at = await self._ask(wait.lease, wire)
            if blocked:
                await self._woken(wire, REPLY_GRACE)
            return await self._taken(wait.lease, wire, asked_at)
        except (AskError, TryAgainError, ClusterDownError) as error:
            if not self._route.redirects:
                raise errors.from_server(error) from error
            # the slot is or goes elsewhere: lease there before blocking again; no busy loop while it migrates
            raise _BrokenWaitError(0 if isinstance(error, MovedError) else MIGRATION_PAUSE) from error
        except ReadOnlyError as error:
            # A replica answers a lease of an empty queue, so going on here would be a busy loop.
            if not self._route.redirects:
                raise errors.from_server(error) from error
            await self._route.refresh()
            raise _BrokenWaitError(MIGRATION_PAUSE) from error
        except redis.ResponseError as error:
            raise errors.from_server(error) from error
        except (redis.RedisError, OSError, io.NothingYetError) as error:
            await wire.cut()
            self._raise_if_closed(error)
            if not asked:
                raise _BrokenWaitError(0) from error
            raise errors.from_connection(error, sent=True) from error
        except BaseException as error:
            self._raise_if_closed(error)
            self._leave_behind(wire, wait.lease, asked=asked)
            raise
        finally:
            with self._guard:
                self._waiting.discard(wire)

    async def _block(self, wait: Wait, wire: io.Wire) -> bool:
        """Block; answers whether BLPOP's reply is still to come. Never over before its time without an element."""
        over = io.now() + wait.seconds
        await wire.send("BLPOP", wait.wake, f"{max(SHORTEST_BLOCK, wait.seconds - 0.005):.3f}")
        try:
            woken = await self._woken(wire, wait.seconds)
        except io.NothingYetError:
            return True
        if not woken:
            await io.sleep(min(BLOCK_EARLY, max(0.0, over - io.now())))
        return False

    async def _woken(self, wire: io.Wire, seconds: float) -> bool:
        """Read BLPOP's answer: true for an element, and for an error that a block may end in: lease again."""
        try:
            return await wire.read_within(seconds) is not None
        except (AskError, TryAgainError, ClusterDownError):
            return True
        except redis.ResponseError as error:
            # any other comes at once and would come again: a lease after each would be a busy loop
            if not str(error).startswith("UNBLOCKED"):
                raise
            return True

    def _raise_if_closed(self, error: BaseException) -> None:
        if self.closed and isinstance(error, Exception):
            message = f"queue {self._keys.name!r} was closed during the call"
            raise errors.QueueClosedError(message) from error

    def _redirection(self, error: redis.ResponseError) -> Exception:
        """A cluster client follows it; for any other it is an error of the server."""
        return error if self._route.redirects else errors.from_server(error)

    def _leave_behind(self, wire: io.Wire, lease: Command[LeaseReply], *, asked: bool) -> None:
        """Interrupted: somebody else ends what is under way. A program that ends waits for that."""
        if wire.owed or asked:
            wire.kept = True
            blocked = wire.owed > int(asked)
            leave = partial(self._leave, wire, lease, blocked=blocked, asked=asked)
            self.background.begin(leave, finish=True)

    async def _leave(self, wire: io.Wire, lease: Command[LeaseReply], *, blocked: bool, asked: bool) -> None:
        """End an interrupted wait so that nothing is lost.

        What a lease still brings is given back, and a wake-up that was taken is passed on, once none can come any more.
        """
        try:
            if asked:
                if blocked:
                    await self._woken(wire, REPLY_GRACE)
                await self._give_back(lease.parse(await wire.read_within(REPLY_GRACE)))
            else:
                await wire.hang_up()
        except Exception:  # noqa: BLE001 (nobody is left to be told)
            await wire.cut()
        except BaseException:
            await wire.cut()
            raise
        finally:
            await wire.give_back()
        await self._pass_on()

    async def _give_back(self, reply: LeaseReply) -> None:
        """Release what nobody will get."""
        if reply.items:
            items = [LeasedItemBase(*taken, reply.deadline, 0) for taken in reply.items]
            with contextlib.suppress(errors.LeaseqError):
                await self._run(commands.release(self._keys, items, uncounted=True))
