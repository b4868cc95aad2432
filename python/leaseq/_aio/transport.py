"""Runs commands on a server.

One round trip each, the script's text sent only where it is unknown, never a retry of what may have taken effect, and
nothing lost when a waiter is interrupted.
"""

import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator
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
from leaseq.flows import REPLY_GRACE, Leave, Wait
from leaseq.item import LeasedItemBase
from leaseq.keys import QueueKeys

T = TypeVar("T")

MIGRATION_PAUSE = 0.1
"""Seconds between the leases of a waiter while its slot migrates: a BLPOP is redirected at once then."""

BLOCK_EARLY = 0.02
"""How much too early a block may end by itself. One that ends earlier was ended by CLIENT UNBLOCK: lease at once."""

SHORTEST_BLOCK = 0.01
"""Below this Redis 6.2 may block for ever (LQ-BLOCK-3)."""

CLOSE_STEP = 0.005
"""Seconds between two looks at whether the calls in flight have ended."""

_STATE_CHANGED = "instance state changed"
"""How a server that becomes a replica ends the blocks on it, before it closes their connections."""

_ELSEWHERE = (AskError, TryAgainError, ClusterDownError, ReadOnlyError)
"""Errors of a cluster whose slot is or goes elsewhere."""

REDIRECTIONS = 12
"""How often a call follows a cluster's redirections, or waits for a slot that migrates, before it fails."""


class _BrokenWaitError(Exception):
    """The block ended in an error before a lease was answered: lease again, after a pause."""

    def __init__(self, pause: float) -> None:
        super().__init__()
        self.pause = pause


class _NothingBehindError(redis.ConnectionError):
    """The server closes the connection: what was sent behind the block was not run."""


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
        self.closed = False
        self._start_over()

    def _start_over(self) -> None:
        self._pid = os.getpid()
        self._waiting: set[io.Wire] = set()
        self._in_flight = 0
        self._guard = io.Guard()
        self.background = io.Background()

    def _after_fork(self) -> None:
        """The waits, calls and threads of a parent process are not ours, and nobody here would let go of its guard."""
        if self._pid != os.getpid():
            self._start_over()

    async def run(self, command: Command[T], patience: float | None = None) -> T:
        """Run a command; its reply may take `patience` seconds, or what the client grants. Raises `leaseq.errors`."""
        with self._flight():
            return await self._run(command, patience)

    async def perform(self, request: Command[LeaseReply] | Wait | Leave) -> LeaseReply | None:
        """Do what a lease flow asks. What an interrupted lease took is given back at once, uncounted."""
        with self._flight():
            if isinstance(request, Leave):
                await self._talk(partial(self._exchange, request.settle), waiter=True)
                return None
            if isinstance(request, Command):
                return self._unless_closed(await self._talk(partial(self._take, request)))
            try:
                return self._unless_closed(await self._wait_and_take(request))
            except errors.LeaseqError:
                # this waiter goes away too: a wake-up that it may have taken is passed on (LQ-BLOCK-6)
                if not self.closed:
                    self.background.begin(self._pass_on)
                raise

    async def _wait_and_take(self, request: Wait) -> LeaseReply:
        pause = request.seconds
        if pause >= SHORTEST_BLOCK:
            try:
                return await self._talk(partial(self._wait, request), waiter=True)
            except _BrokenWaitError as broken:
                pause = min(pause, broken.pause)
        await self._talk_later(pause)
        return await self._talk(partial(self._take, request.lease), waiter=True)

    async def close(self) -> None:
        """End all waits, let other calls finish, and end the client if it is ours."""
        self._after_fork()
        with self._guard:
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
        give_up = io.now() + REPLY_GRACE
        while self._in_flight and io.now() < give_up:
            await io.sleep(CLOSE_STEP)
        # what interrupted leases still bring is given back first
        await self.background.end(REPLY_GRACE)
        if self._owned:
            await io.close(self.client)

    @contextlib.contextmanager
    def _flight(self) -> Iterator[None]:
        """One call, which close waits for. Raises QueueClosedError."""
        self._after_fork()
        with self._guard:
            self._raise_if_closed("is closed")
            self._in_flight += 1
        try:
            yield
        finally:
            with self._guard:
                self._in_flight -= 1

    def _unless_closed(self, reply: LeaseReply) -> LeaseReply:
        """The reply. What was leased for a queue that is closed by now goes back: nobody could complete it there."""
        if not self.closed:
            return reply
        if reply.items:
            self.background.begin(partial(self._give_back, reply), finish=True)
        if not reply.completed:
            self._raise_if_closed()
        return reply._replace(items=[])

    async def _run(self, command: Command[T], patience: float | None = None) -> T:
        return command.parse(await self._talk(partial(self._exchange, command, patience=patience)))

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

    async def _exchange(self, command: Command[Any], wire: io.Wire, patience: float | None = None) -> Any:
        """Send a command, read its reply."""
        try:
            await wire.send(*command.evalsha())
            try:
                return await wire.read(patience)
            except NoScriptError:
                await wire.send(*command.eval())
                return await wire.read(patience)
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
            self._raise_if_closed()
            self._waiting.add(wire)
        try:
            blocked = await self._block(wait, wire)
            asked = True
            with self._guard:  # close cuts a block, but the lease behind it may bring an item
                self._waiting.discard(wire)
            asked_at = await self._ask(wait.lease, wire)
            if blocked:
                await self._woken(wire, REPLY_GRACE)
            return await self._taken(wait.lease, wire, asked_at)
        except redis.ResponseError as error:
            raise await self._refused_wait(error) from error
        except (redis.RedisError, OSError, io.NothingYetError) as error:
            await wire.cut()
            self._raise_if_closed(cause=error)
            if not asked or isinstance(error, _NothingBehindError):
                raise _BrokenWaitError(0) from error
            raise errors.from_connection(error, sent=True) from error
        except BaseException:
            self._leave_behind(wire, wait.lease, asked=asked)
            raise
        finally:
            with self._guard:
                self._waiting.discard(wire)

    async def _refused_wait(self, error: redis.ResponseError) -> Exception:
        """What a wait raises that the server answered with an error."""
        if not self._route.redirects or not isinstance(error, _ELSEWHERE):
            # also of a replica: it answers a lease of an empty queue, so going on there would be a busy loop
            return errors.from_server(error)
        if isinstance(error, ReadOnlyError):
            await self._route.refresh()
        # the slot is or goes elsewhere: lease there before blocking again; no busy loop while it migrates
        return _BrokenWaitError(0 if isinstance(error, MovedError) else MIGRATION_PAUSE)

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
            if _STATE_CHANGED in str(error):
                message = "the server becomes a replica and closes the connection"
                raise _NothingBehindError(message) from error
            return True

    def _raise_if_closed(
        self, when: str = "was closed during the call", cause: Exception | None = None
    ) -> None:
        if self.closed:
            message = f"queue {self._keys.name!r} {when}"
            raise errors.QueueClosedError(message) from cause

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
