"""Calls that wait, and calls that take something: nothing is lost when they are interrupted."""

import contextlib
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import redis
from redis.exceptions import MovedError, NoScriptError, OutOfMemoryError

from leaseq import errors
from leaseq._aio import concurrency
from leaseq._aio.calls import ELSEWHERE, Calls, CallState, is_elsewhere
from leaseq._aio.connection import CLOSE_SECS, Connection, ReplyTimeoutError
from leaseq._aio.lifecycle import Lifecycle
from leaseq.commands import Command, LeaseReply
from leaseq.flows import REPLY_GRACE, Wait

T = TypeVar("T")

MIGRATION_PAUSE = 0.1
"""Seconds between the looks of a waiter while its slot migrates: a block is redirected at once then."""

BLOCK_EARLY = 0.02
"""Seconds that a block may end too early. If it ends earlier, CLIENT UNBLOCK ended it: call again at once."""

SHORTEST_BLOCK = 0.01
"""Below this Redis 6.2 may block without limit (LQ-BLOCK-3)."""

_STATE_CHANGED = "instance state changed"
"""How a server that becomes a replica ends the blocks on it, before it closes their connections."""


class _BrokenWaitError(Exception):
    """The block ended in an error before anything else was answered: look again, after a pause."""

    def __init__(self, pause: float) -> None:
        super().__init__()
        self.pause = pause


class _TrailingCommandLostError(redis.ConnectionError):
    """The server closes the connection: what was sent behind the block was not run."""


class BlockingCalls:
    """Waits on one server."""

    def __init__(self, calls: Calls, life: Lifecycle) -> None:
        self._calls = calls
        self._life = life

    async def take_after(
        self, error: BaseException, connection: Connection, command: Command[T], answer: T | None
    ) -> T:
        """Return the answer of a command whose first try ended with an error. Items that the caller cannot get are released.

        It returns the connection to the pool.
        """
        state = CallState()
        state.answer = answer
        try:
            try:
                return await self._take_with_text(error, connection, command, state)
            except ELSEWHERE as elsewhere:
                redirected = elsewhere
            finally:
                if not state.detached:
                    self._calls.route.release(connection)
            return await self._calls.talk(partial(self._take, command, (), state), state, redirected)
        except Exception:
            raise
        except BaseException:
            self._abandon(command, (), state)
            raise

    async def _take_with_text(
        self, error: BaseException, connection: Connection, command: Command[T], state: CallState
    ) -> T:
        """Send a command with its text, because the server did not know its digest. Raises any other error."""
        if state.answer is not None:
            raise error
        try:
            if not isinstance(error, NoScriptError):
                raise error  # noqa: TRY301 (as any other)
            await connection.send(*command.eval())
            return command.parse(await connection.read_within(REPLY_GRACE))
        except BaseException as latest:
            detach = partial(self._detach, connection, command, (), state, is_sent=True)
            await self._calls.raise_named(latest, connection, detach)
            raise

    async def wait(self, wait: Wait[T]) -> T:
        """Wait, then run the command. A waiter that goes away, with an error or interrupted, settles (LQ-BLOCK-6)."""
        state = CallState()
        try:
            return await self._wait(wait, state)
        except Exception:
            self._pass_on_later(wait.settles)
            raise
        except BaseException:
            self._abandon(wait.then, wait.settles, state)
            raise

    async def settle(self, settles: Sequence[Command[bool]]) -> None:
        """Settle for a waiter that stops without an interruption."""
        try:
            await self._pass_on(settles)
        except BaseException:
            self._pass_on_later(settles)
            raise

    def run_later(self, due: Sequence[Command[Any]]) -> None:
        """Run the commands that are due for an answer that arrived too late. A program that ends waits for them."""
        if due:
            self._life.background.begin(partial(self._run_all_quietly, due), finish=True)

    async def _wait(self, wait: Wait[T], state: CallState) -> T:
        pause = wait.seconds
        if pause >= SHORTEST_BLOCK:
            try:
                return await self._calls.talk(partial(self._block_and_take, wait, state), state)
            except _BrokenWaitError as broken:
                pause = min(pause, broken.pause)
        await concurrency.sleep(max(0.0, pause))
        return await self._calls.talk(partial(self._take, wait.then, wait.settles, state), state)

    async def _take(
        self, command: Command[T], settles: Sequence[Command[bool]], state: CallState, connection: Connection
    ) -> T:
        sent_at = concurrency.now()
        try:
            await connection.send(*command.evalsha())
            return await self._read_answer(command, connection, sent_at)
        except BaseException as error:
            detach = partial(self._detach, connection, command, settles, state, is_sent=True)
            await self._calls.raise_named(error, connection, detach)
            raise

    async def _read_answer(self, command: Command[T], connection: Connection, sent_at: float) -> T:
        try:
            reply = await connection.read_within(REPLY_GRACE)
        except NoScriptError:
            await connection.send(*command.eval())
            reply = await connection.read_within(REPLY_GRACE)
        answer: Any = command.parse(reply)
        if isinstance(answer, LeaseReply):
            answer.sent_at = sent_at
        result: T = answer
        return result

    async def _block_and_take(self, wait: Wait[T], state: CallState, connection: Connection) -> T:
        """Block until a wake-up or the time, then run the command on the same connection.

        That also makes the server end a block in time, and not up to 100 ms late.
        """
        is_sent = False
        try:
            self._life.join(connection)
            if wait.pipelined and connection.can_half_close:
                return await self._block_followed(wait, connection)
            blocked = await self._block(wait, connection)
            is_sent = True
            self._life.part(connection)  # closing cuts a block, but the command behind it may bring an item
            sent_at = concurrency.now()
            await connection.send(*wait.then.evalsha())
            refusal = await self._refusal_of_block(connection, REPLY_GRACE) if blocked else None
            return await self._read_behind_block(wait.then, connection, sent_at, refusal)
        except errors.REFUSALS as error:
            if not isinstance(error, redis.ResponseError):
                connection.close()  # the next one asks for its rights anew
            raise await self._refused(error, is_sent=is_sent) from error
        except (redis.RedisError, OSError, ReplyTimeoutError) as error:
            connection.close()
            self._life.raise_if_closed(cause=error)
            if not (is_sent or connection.pipelined) or isinstance(error, _TrailingCommandLostError):
                raise _BrokenWaitError(0) from error
            raise errors.from_connection(error, sent=True) from error
        except BaseException:
            self._life.part(connection)  # before another waiter gets it
            self._detach(connection, wait.then, wait.settles, state, is_sent=is_sent or connection.pipelined)
            raise
        finally:
            if not state.detached:
                self._life.part(connection)

    async def _block_followed(self, wait: Wait[T], connection: Connection) -> T:
        """Send the block, and the command behind it at once: the server runs it as soon as the block is over."""
        latest = concurrency.now() + wait.seconds
        await connection.send(*wait.block, f"{wait.seconds:.3f}")
        connection.pipelined = True
        await connection.send(*wait.then.evalsha())
        refusal = await self._refusal_of_block(connection, wait.seconds + REPLY_GRACE)
        self._life.part(connection)
        # it ran no later than that, however late its reply is read: by a process that was stopped meanwhile, for one
        sent_at = min(concurrency.now(), latest)
        return await self._read_behind_block(wait.then, connection, sent_at, refusal)

    async def _refusal_of_block(self, connection: Connection, seconds: float) -> redis.RedisError | None:
        """Read the reply of a block that a command was sent behind. Return the error that ends the wait, if it is one."""
        try:
            await self._woken(connection, seconds)
        except errors.REFUSALS as error:
            return error
        return None

    async def _read_behind_block(
        self, command: Command[T], connection: Connection, sent_at: float, refusal: redis.RedisError | None
    ) -> T:
        """Read the answer of a command that ran although its block failed: its items count (LQ-BLOCK-22), else raise `refusal`."""
        answer = await self._read_answer(command, connection, sent_at)
        if refusal is not None and not (isinstance(answer, LeaseReply) and answer.items):
            raise refusal
        return answer

    async def _refused(self, error: redis.RedisError, *, is_sent: bool) -> Exception:
        """What a wait raises that the server answered with an error."""
        if isinstance(error, OutOfMemoryError) and not is_sent:
            # a full server refuses BLMOVE, which takes no room: look at the end of the time
            return _BrokenWaitError(math.inf)
        if not self._calls.redirected(error):
            # also of a replica: it answers a lease of an empty queue, so going on there would be a busy loop
            return await self._calls.refused(error)
        # the slot is or goes elsewhere: look there before blocking again; no busy loop while it migrates
        return _BrokenWaitError(0 if isinstance(error, MovedError) else MIGRATION_PAUSE)

    async def _block(self, wait: Wait[Any], connection: Connection) -> bool:
        """Block; answers whether the block's reply is still to come. Never over before its time without an element."""
        wait_until = concurrency.now() + wait.seconds
        await connection.send(*wait.block, f"{max(SHORTEST_BLOCK, wait.seconds - 0.005):.3f}")
        try:
            woken = await self._woken(connection, wait.seconds)
        except ReplyTimeoutError:
            return True
        if not woken:
            await concurrency.sleep(min(BLOCK_EARLY, max(0.0, wait_until - concurrency.now())))
        return False

    async def _woken(self, connection: Connection, seconds: float) -> bool:
        """Read the block's answer: true for an element, and for an error that a block may end in: look again."""
        try:
            return await connection.read_within(seconds) is not None
        except redis.ResponseError as error:
            if is_elsewhere(error):
                return True
            # any other comes at once and would come again: a call after each would be a busy loop
            if not str(error).startswith("UNBLOCKED"):
                raise
            if _STATE_CHANGED in str(error):
                raise _TrailingCommandLostError(
                    "the server becomes a replica and closes the connection"
                ) from error
            return True

    def _abandon(self, command: Command[Any], settles: Sequence[Command[bool]], state: CallState) -> None:
        """Interrupted: what is on the way to the caller goes back, and a wake-up that was taken is passed on."""
        if state.detached:
            return  # the task that keeps it does both
        if state.answer is not None and command.undo:
            self.run_later(command.undo(state.answer))
        self._pass_on_later(settles)

    def _detach(
        self,
        connection: Connection,
        command: Command[Any],
        settles: Sequence[Command[bool]],
        state: CallState,
        *,
        is_sent: bool,
    ) -> None:
        """Interrupted: a background task ends what is under way. A program that ends waits for it."""
        if connection.pending_replies or is_sent:
            state.detached = True
            blocked = connection.pending_replies > int(is_sent)
            detach = partial(
                self._finish_detached, connection, command, settles, blocked=blocked, is_sent=is_sent
            )
            self._life.background.begin(detach, finish=True)

    async def _finish_detached(
        self,
        connection: Connection,
        command: Command[Any],
        settles: Sequence[Command[bool]],
        *,
        blocked: bool,
        is_sent: bool,
    ) -> None:
        """End an interrupted wait so that nothing is lost.

        Items that the command still brings are released, and a wake-up that was taken is put back when no other can come.
        """
        timeout = REPLY_GRACE
        try:
            if connection.pipelined and blocked:
                timeout = CLOSE_SECS
                connection.half_close()
            if is_sent:
                if blocked:
                    await self._woken(connection, timeout)
                answer = command.parse(await connection.read_within(timeout))
                if command.undo:
                    await self._run_all_quietly(command.undo(answer))
            else:
                await connection.close_gracefully()
        except Exception:  # noqa: BLE001 (no caller is left)
            connection.close()
        except BaseException:
            connection.close()
            raise
        finally:
            self._calls.route.release(connection)
        await self._pass_on(settles)

    def _pass_on_later(self, settles: Sequence[Command[bool]]) -> None:
        if settles:
            self._life.background.begin(partial(self._pass_on, settles))

    async def _pass_on(self, settles: Sequence[Command[bool]]) -> None:
        """Settle for a waiter that is gone. A failure of that is not reported."""
        await self._run_all_quietly(settles)

    async def _run_all_quietly(self, commands: Sequence[Command[Any]]) -> None:
        for command in commands:
            with contextlib.suppress(errors.LeaseqError):
                await self._calls.run(command)
