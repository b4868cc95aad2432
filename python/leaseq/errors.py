"""The errors leaseq raises. Each says whether the call can have taken effect (LQ-ERROR-4)."""

import re
from typing import Any, ClassVar, Final

import redis

_CODES: dict[str, type["LeaseqError"]] = {}
_NO_RIGHT = ("ACL failure in script", "The user executing the script can't")
"""How Redis 7 and Valkey, and how Redis 6.2, say that a command inside a script was refused."""

_NO_ROOM: Final = re.compile(r"(ERR )?max number of clients\b.* reached")
"""What a server answers to a connection that it does not take."""

REFUSALS = (redis.ResponseError, redis.AuthenticationError, redis.exceptions.BusyLoadingError)
"""How redis-py raises an error reply: two kinds as if the connection had failed, which stands all the same."""

_NOT_RUN = (
    redis.exceptions.AskError,
    redis.exceptions.ClusterCrossSlotError,
    redis.exceptions.ClusterDownError,
    redis.exceptions.ExecAbortError,
    redis.exceptions.MasterDownError,
    redis.exceptions.NoScriptError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.TryAgainError,
)
_NOT_RUN_CODES = {"BUSY", "MISCONF", "NOREPLICAS", "UNBLOCKED"}
"""Errors of the server that come before a script's first write. After any other a script may have stopped halfway."""


class LeaseqError(Exception):
    """Base of all errors of this package.

    `definite` is true when the effect of the call is known: nothing, but for what `answers` says. It is false when the
    effect is unknown (a lost reply).
    `answers` holds what was answered before the error, for calls that send several batches: a list, one answer for
    each item in order. `in_doubt` is how many entries behind those may have taken effect or not; it is 0 where the error
    is definite. What comes behind them has not been done.
    """

    code: ClassVar[str | None] = None
    definite: bool = True

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.answers: list[Any] = []
        self._in_doubt = 1  # entries of a call whose effect is unknown

    @property
    def in_doubt(self) -> int:
        """How many entries behind those of `answers` may have taken effect or not."""
        return 0 if self.definite else self._in_doubt

    @in_doubt.setter
    def in_doubt(self, count: int) -> None:
        self._in_doubt = count

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if code := cls.__dict__.get("code"):
            _CODES[code] = cls


class BadIdError(LeaseqError, ValueError):
    """An id is not 1..256 bytes of UTF-8 without NUL (LQ-ITEM-1)."""

    code = "LEASEQ_BAD_ID"


class BadArgumentError(LeaseqError, ValueError):
    """An argument has the wrong form or is out of range."""

    code = "LEASEQ_BAD_ARGUMENT"


class TooLargeError(LeaseqError, ValueError):
    """Data or a result is longer than the queue takes (1 MiB unless `configure` says otherwise), or headers are.

    Headers and content type have 4096 bytes together, names included.
    """

    code = "LEASEQ_TOO_LARGE"


class QueueFullError(LeaseqError):
    """The queue holds as many items as `configure` allows; `add_item_when_room` waits until it does not.

    `answers` has an answer for each item that was sent: true, false (its id exists) or None (no room). That is the whole
    truth, and `definite` is true: those with true were added, those with None were not.
    """

    code = "LEASEQ_FULL"


class CrossGroupError(LeaseqError, ValueError):
    """A follow-up is for a queue of another group, which no one call can reach: create both with the same `group=`."""

    code = "LEASEQ_CROSS_GROUP"


class FormatError(LeaseqError):
    """The queue was written by a newer version of the protocol, or is damaged."""

    code = "LEASEQ_FORMAT"


class ClockError(LeaseqError):
    """The server's clock is outside 2025..2060."""

    code = "LEASEQ_CLOCK"


class WrongKeyTypeError(LeaseqError):
    """Something else uses one of the queue's keys."""

    code = "LEASEQ_WRONG_TYPE"


class OutOfMemoryError(LeaseqError):
    """The server reached its memory limit: nothing can be added; all else still works."""

    code = "LEASEQ_OUT_OF_MEMORY"


class BadNameError(LeaseqError, ValueError):
    """The name or group of a queue is not 1 to 100 letters, digits or `_ . -` (LQ-KEY-2)."""


class BadTypeError(LeaseqError, TypeError):
    """An argument has the wrong Python type."""


class NoServerError(LeaseqError, ValueError):
    """No server was named."""


class QueueClosedError(LeaseqError):
    """The queue object was closed."""


class ServerError(LeaseqError):
    """The server refused the call for a reason of its own (read-only replica, cluster down, ...).

    `definite` is false where the script may have stopped on its way, for example for a missing right.
    """


class AccessDeniedError(ServerError):
    """The server refused the user: wrong password, or no right to run scripts on the queue's keys."""


class UnavailableError(LeaseqError):
    """The server could not be reached. The call was not sent."""


class ReplyLostError(LeaseqError):
    """The connection broke after the call was sent: it may or may not have taken effect (LQ-ERROR-4)."""

    definite = False


class EmbeddedServerError(LeaseqError):
    """The embedded server cannot be started or joined; the message names the ways out."""


def from_server(error: redis.RedisError) -> LeaseqError:
    """The named error for an error reply, one of `REFUSALS`."""
    if not isinstance(error, redis.ResponseError):
        return from_connection(error, sent=True)
    text = str(error)
    named = _CODES.get(text.split(" ", 1)[0])
    if named:
        return named(text)
    inside = any(words in text for words in _NO_RIGHT)
    if inside or isinstance(error, redis.exceptions.NoPermissionError):
        refused: ServerError = AccessDeniedError(
            f"the server user lacks a right: {text}; it needs EVALSHA, EVAL and BLPOP, the commands inside the scripts,"
            " and the keys leaseq:* (spec/11-security.md)"
        )
        refused.definite = not inside
    elif _NO_ROOM.fullmatch(text):
        return UnavailableError(f"the server takes no further connection, the call was not run: {text}")
    else:
        refused = ServerError(f"the server refused the call: {text}")
        refused.definite = isinstance(error, _NOT_RUN) or text.split(" ", 1)[0] in _NOT_RUN_CODES
    return refused


def from_connection(error: Exception, *, sent: bool) -> LeaseqError:
    """The named error for a connection that failed before (`sent` false) or after the call was sent."""
    if isinstance(error, redis.AuthenticationError):
        return AccessDeniedError(f"the server refused the user or password: {error}")
    if isinstance(error, redis.exceptions.MaxConnectionsError):
        return UnavailableError("all connections of the client are in use: raise its max_connections")
    if isinstance(error, redis.exceptions.BusyLoadingError):
        return UnavailableError(f"the server is starting, the call was not run: {error}")
    if isinstance(error.__context__, redis.exceptions.ReadOnlyError):
        return ServerError(f"the server became a replica: {error}")
    if _NO_ROOM.fullmatch(str(error)):
        return UnavailableError(f"the server takes no further connection, the call was not run: {error}")
    if sent:
        return ReplyLostError(
            f"the connection broke before the reply came, the call may have taken effect: {error}"
        )
    text = str(error).partition(" : <")[0]  # redis-py describes a Sentinel that is away by all its settings
    return UnavailableError(f"the server cannot be reached, nothing was sent: {text}")
