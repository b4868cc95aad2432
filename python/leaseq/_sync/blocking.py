# Generated from _aio/blocking.py by tools/unasync.py: do not edit.
"""A block on a server's list, and the command behind it, on one connection."""

import math
from typing import Any, TypeVar

import redis
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    OutOfMemoryError,
    TryAgainError,
)

from leaseq import errors
from leaseq._sync import concurrency
from leaseq._sync.connection import CLOSE_SECS, Connection, ReplyTimeoutError
from leaseq._sync.lifecycle import Lifecycle
from leaseq._sync.pending_call import PendingCall
from leaseq.commands import LeaseReply
from leaseq.flows import REPLY_GRACE, Wait

T = TypeVar("T")

MIGRATION_PAUSE = 0.1
"""Seconds between the looks of a waiter while its slot migrates: a block is redirected at once then."""

BLOCK_EARLY = 0.02
"""Seconds that a block may end too early. If it ends earlier, CLIENT UNBLOCK ended it: call again at once."""

SHORTEST_BLOCK = 0.01
"""Below this Redis 6.2 may block without limit (LQ-BLOCK-3)."""

SLOT_MOVED_ERRORS = (AskError, TryAgainError, ClusterDownError)
"""Replies of a cluster whose slot is or goes elsewhere. redis-py derives MOVED from ASK, and MASTERDOWN from CLUSTERDOWN."""

_STATE_CHANGED = "instance state changed"
"""Part of the reply of a server that becomes a replica: it ends the blocks on it, then closes their connections."""


def is_elsewhere(error: BaseException) -> bool:
    """Return whether a cluster says that the slot is or goes elsewhere."""
    return isinstance(error, SLOT_MOVED_ERRORS) and not isinstance(error, MasterDownError)


class BrokenBlockError(Exception):
    """The block ended with an error, and the command behind it was not run: run it after a pause, in seconds."""

    def __init__(self, pause: float) -> None:
        super().__init__()
        self.pause = pause


class _TrailingCommandLostError(redis.ConnectionError):
    """The server closes the connection: what was sent behind the block was not run."""


def block_and_run(
    wait: Wait[T], call: PendingCall[T], connection: Connection, life: Lifecycle, redirects: bool
) -> T:
    """Block until a wake-up or the time is over, then run the command and return its answer.

    The command also makes the server end a block in time, and not up to 100 ms late. `redirects` is whether the server
    may send a call to another node. Raises BrokenBlockError, QueueClosedError, errors of redis-py.
    """
    try:
        if wait.pipelined and connection.can_half_close:
            refusal = _block_followed(wait, call, connection, life)
        else:
            refusal = _block_then_send(wait, call, connection, life)
        answer = connection.receive(wait.then)
    except errors.REFUSALS as error:
        if not isinstance(error, redis.ResponseError):
            connection.close()  # the next one asks for its rights anew
        elif isinstance(error, OutOfMemoryError) and not call.is_sent:
            # a full server refuses BLMOVE, which takes no room: look at the end of the time
            raise BrokenBlockError(math.inf) from error
        elif redirects and is_elsewhere(error):
            # look there before blocking again; no busy loop while the slot migrates
            raise BrokenBlockError(0 if isinstance(error, MovedError) else MIGRATION_PAUSE) from error
        # also of a replica: it answers a lease of an empty queue, so going on there would be a busy loop
        raise
    except (redis.RedisError, OSError, ReplyTimeoutError) as error:
        connection.close()
        life.raise_if_closed(cause=error)
        if not call.is_sent or isinstance(error, _TrailingCommandLostError):
            raise BrokenBlockError(0) from error
        raise
    if refusal is not None and not (isinstance(answer, LeaseReply) and answer.items):
        raise refusal  # behind items, which count (LQ-BLOCK-22)
    return answer


def receive_abandoned(call: PendingCall[T], connection: Connection) -> T | None:
    """Return what an interrupted call still brings. If its block is not over, the server ends that first."""
    replies = 1 if call.command is None or call.command.durable is None else 2
    blocked = connection.pending_replies > (replies if call.is_sent else 0)
    timeout = REPLY_GRACE
    try:
        if connection.pipelined and blocked:
            timeout = CLOSE_SECS
            connection.half_close()
        if call.is_sent and call.command is not None:
            if blocked:
                _woken(connection, timeout)
            return connection.receive(call.command, timeout)
        connection.close_gracefully()
    except Exception:  # noqa: BLE001 (no caller is left)
        connection.close()
    except BaseException:
        connection.close()
        raise
    return None


def _block_followed(
    wait: Wait[Any], call: PendingCall[Any], connection: Connection, life: Lifecycle
) -> redis.RedisError | None:
    """Send the block and at once the command, which the server runs as soon as the block is over."""
    latest = concurrency.now() + wait.seconds
    try:
        life.join(connection)
        connection.send(*wait.block, f"{wait.seconds:.3f}")
        connection.pipelined = call.is_sent = True
        connection.send_call(wait.then)
        refusal = _refusal_of_block(connection, wait.seconds + REPLY_GRACE)
    finally:
        life.part(connection)
    # it ran no later than that, however late its reply is read: by a process that was stopped meanwhile, for one
    call.sent_at = min(concurrency.now(), latest)
    return refusal


def _block_then_send(
    wait: Wait[Any], call: PendingCall[Any], connection: Connection, life: Lifecycle
) -> redis.RedisError | None:
    """Send the block, and the command when the block should be over."""
    try:
        life.join(connection)
        is_over = _block(wait, connection)
    finally:
        life.part(connection)  # closing cuts a block, but the command behind it may bring an item
    call.is_sent, call.sent_at = True, concurrency.now()
    connection.send_call(wait.then)
    return None if is_over else _refusal_of_block(connection, REPLY_GRACE)


def _block(wait: Wait[Any], connection: Connection) -> bool:
    """Block; false if the reply is still to come. Without an element it does not end before its time."""
    wait_until = concurrency.now() + wait.seconds
    connection.send(*wait.block, f"{max(SHORTEST_BLOCK, wait.seconds - 0.005):.3f}")
    try:
        woken = _woken(connection, wait.seconds)
    except ReplyTimeoutError:
        return False
    if not woken:
        concurrency.sleep(min(BLOCK_EARLY, max(0.0, wait_until - concurrency.now())))
    return True


def _refusal_of_block(connection: Connection, seconds: float) -> redis.RedisError | None:
    """Read the reply of a block that a command was sent behind. Return the error that ends the wait, if it is one."""
    try:
        _woken(connection, seconds)
    except errors.REFUSALS as error:
        return error
    return None


def _woken(connection: Connection, seconds: float) -> bool:
    """Read the reply of a block: true for an element, and for an error after which to look again."""
    try:
        return connection.read_within(seconds) is not None
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
