"""The errors leaseq raises. Each says whether the call can have taken effect (LQ-ERROR-4)."""

import re
from typing import Any, Final

import redis

from leaseq.base_error import BY_CODE, LeaseqError
from leaseq.password_file import UnsendableLoginError
from leaseq.script_errors import (
    NOT_RUN,
    TURNED_AWAY,
    BadArgumentError,
    BadIdError,
    ClockError,
    CrossGroupError,
    FormatError,
    OutOfMemoryError,
    QueueInUseError,
    TooLargeError,
    WrongKeyTypeError,
)

__all__ = [
    "REFUSALS",
    "AccessDeniedError",
    "BadArgumentError",
    "BadIdError",
    "BadNameError",
    "BadTypeError",
    "ClockError",
    "CrossGroupError",
    "EmbeddedServerError",
    "FormatError",
    "LeaseqError",
    "NoDurabilityError",
    "NoScriptsError",
    "NoServerError",
    "NotDurableError",
    "OutOfMemoryError",
    "QueueClosedError",
    "QueueFullError",
    "QueueInUseError",
    "ReplyLostError",
    "ServerError",
    "TooLargeError",
    "UnavailableError",
    "WrongKeyTypeError",
    "cannot_confirm",
    "from_connection",
    "from_server",
]

for _each in (LeaseqError, *BY_CODE.values()):
    _each.__module__ = __name__  # where users import them from, and what tracebacks name

_ACL_FAILURES = ("ACL failure in script", "The user executing the script can't")
"""The words of Redis 7 and Valkey, and of Redis 6.2, for a command inside a script that was refused."""

_UNAUTHENTICATED: Final = "Protocol error: unauthenticated"
"""The start of the reply of Redis 7 to a call of many or long arguments before a password."""

REFUSALS = (redis.ResponseError, redis.AuthenticationError, redis.exceptions.BusyLoadingError)
"""The errors that redis-py raises for an error reply: two kinds as if the connection had failed, which stands all the same."""

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
"""The errors that redis-py raises for replies of `NOT_RUN` whose first word it takes away."""


class QueueFullError(LeaseqError):
    """The queue holds as many items as `configure` allows; `add_item_when_room` waits until there is room.

    `answers` has an answer for each item that was sent: true (added), false (its id exists) or None (no room, not added).
    `definite` is true.
    """

    code = "LEASEQ_FULL"


class BadNameError(LeaseqError, ValueError):
    """The name or group of a queue is not 1 to 100 letters, digits or `_ . -` (LQ-KEY-2)."""


class BadTypeError(LeaseqError, TypeError):
    """An argument has the wrong Python type."""


class NoServerError(LeaseqError, ValueError):
    """No server was given, and $REDIS_URL is not set."""


class QueueClosedError(LeaseqError):
    """The queue object was closed, before or during the call."""


class ServerError(LeaseqError):
    """The server refused the call, for example because it is a read-only replica or its cluster is down.

    `definite` is false if the script may have stopped halfway, for example because of a missing right.
    """


class AccessDeniedError(ServerError):
    """The server refused the user: wrong password, or no right to run scripts on the queue's keys.

    A password file that is no UTF-8 has this error too.
    """


class NoScriptsError(ServerError):
    """The server runs no Lua scripts: Valkey without its Lua module, Garnet without `--lua`, or EVAL renamed."""


class UnavailableError(LeaseqError):
    """The server could not be reached, is starting, or takes no further connection. The call was not run."""


class ReplyLostError(LeaseqError):
    """The connection broke, or no reply came in time, after the call was sent: it may have taken effect (LQ-ERROR-4)."""

    definite = False


class NoDurabilityError(ServerError):
    """The server cannot confirm what `durable` asks for: it has no WAITAOF, or no append-only file. Nothing was done."""


class NotDurableError(LeaseqError):
    """The call was done, but fewer servers have it than `durable` asks for. It is not sent again (LQ-CLIENT-1).

    `definite` is true: the call took effect on the primary, and `answers` has all of it. A failover can still lose it.

    Attributes:
        answer: what the call returns without this error. For a call of many items, `answers`: the answers of this round trip and
            of those before it; later items were not sent. None is an item without room.
        reached: the number of servers that have it: replicas, or disks for `Disk`. None if that is unknown, because the
            connection broke, the queue was closed or the server refused to wait.
        wanted: the number that was asked for.
    """

    def __init__(self, message: str, wanted: int = 1, reached: int | None = None) -> None:
        super().__init__(message)
        self.wanted = wanted
        self.reached = reached
        self._is_of_one = False

    @property
    def answer(self) -> Any:
        """The value that the call returns without this error."""
        return self.answers[0] if self._is_of_one else self.answers

    @answer.setter
    def answer(self, answer: Any) -> None:
        self._is_of_one, self.answers = True, [answer]


class EmbeddedServerError(LeaseqError):
    """The embedded server cannot be started or joined; the message says what to do."""


_MILLISECONDS: Final = re.compile(
    r"\b(duration|delay|expires_in|keep|older_than) must be a whole number(?: of milliseconds)? in (\d+)\.\.(\d+)"
)
"""The text by which scripts refuse a duration, in milliseconds."""


def _as_seconds(refused: re.Match[str]) -> str:
    """The same in the client's unit, and by the name of its argument."""
    name = "lease_secs" if refused[1] == "duration" else refused[1]
    least, most = (f"{int(number) / 1000:.3f}".rstrip("0").rstrip(".") for number in refused.group(2, 3))
    return f"{name} must be {least} to {most} seconds"


def from_server(error: redis.RedisError) -> LeaseqError:
    """The named error for an error reply, one of `REFUSALS`."""
    if not isinstance(error, redis.ResponseError):
        return from_connection(error, sent=True)
    text = str(error)
    named = BY_CODE.get(text.split(" ", 1)[0])
    if named:
        return named(_MILLISECONDS.sub(_as_seconds, text))
    if isinstance(error, redis.exceptions.OutOfMemoryError):  # a plain command; scripts name it themselves
        return OutOfMemoryError(f"the server reached its memory limit: {text}")
    inside = any(words in text for words in _ACL_FAILURES)
    if inside or isinstance(error, redis.exceptions.NoPermissionError):
        refused: ServerError = AccessDeniedError(
            f"the server user lacks a right{_named(text)}: {text}; `leaseq acl ROLE` prints the rules of a producer, a worker"
            " and other roles"
        )
        refused.definite = not inside
    elif text.startswith(_UNAUTHENTICATED):
        return AccessDeniedError(_no_password("Authentication required."))
    elif _is_turned_away(text):
        return UnavailableError(f"the server takes no further connection, the call was not run: {text}")
    else:
        refused = ServerError(f"the server refused the call: {text}")
        refused.definite = isinstance(error, _NOT_RUN) or text.split(" ", 1)[0] in NOT_RUN
    return refused


def cannot_confirm(error: redis.ResponseError, command: str) -> LeaseqError | None:
    """The named error for the refusal of WAIT or WAITAOF ahead of a call; None if the call itself shows what is wrong."""
    text = str(error)
    if isinstance(error, redis.exceptions.NoPermissionError):
        waits_for = "disk" if command == "WAITAOF" else "replicas"
        return AccessDeniedError(
            f"the server user lacks a right, +{command.lower()}, nothing was done: {text};"
            f" `leaseq acl ROLE --durable {waits_for}` prints the rules of a user that has it"
        )
    if "unknown command" in text.lower():
        advice = (
            "take Redis or Valkey 7.2 or later, or durable=Replicas(...)"
            if command == "WAITAOF"
            else "leave out durable"
        )
        return NoDurabilityError(f"the server has no command {command}, nothing was done: {advice}")
    if "appendonly" in text:
        return NoDurabilityError(
            "the server keeps no append-only file, nothing was done: set appendonly yes, or use durable=Replicas(...)"
        )
    return None if "replica instances" in text else from_server(error)


def _named(text: str) -> str:
    """The missing right, if the server names the command. Redis 6.2 does not for a command inside a script."""
    command = re.search(r"'([\w|-]+)' command", text)
    return f", +{command[1]}" if command else ""


def _is_turned_away(text: str) -> bool:
    """Return whether the server did not take the connection. redis-py leaves out ERR."""
    return f"ERR {text.removeprefix('ERR ')}".startswith(TURNED_AWAY)


def _no_password(text: str) -> str:
    advice = "Give both in the URL, redis://USER:PASSWORD@HOST"
    if "without any password configured" in text:
        advice = "The server has no password: leave it out of the URL, redis://HOST, or name a user, redis://USER:PASSWORD@HOST"
    return f"the server refused the user or password, nothing was done: {text} {advice}"


def _from_greeting(error: redis.ResponseError) -> LeaseqError:
    """The named error for what a server refused before the first call: what it refuses for now passes, the rest is for a person."""
    text = str(error)
    if isinstance(error, redis.exceptions.NoPermissionError):
        return AccessDeniedError(
            f"the server user lacks a right that opening a connection needs{_named(text)}: {text};"
            " `leaseq acl ROLE` prints the rules of a user"
        )
    if isinstance(error, _NOT_RUN) or text.split(" ", 1)[0] in NOT_RUN:
        return from_server(error)
    return BadArgumentError(f"the server refuses a setting of the connection, nothing was sent: {text}")


def from_connection(error: Exception, *, sent: bool) -> LeaseqError:
    """The named error for a connection that failed before (`sent` false) or after the call was sent."""
    if isinstance(error, UnsendableLoginError):
        return AccessDeniedError(f"{error}; nothing was sent")
    if isinstance(error, redis.AuthenticationError):
        return AccessDeniedError(_no_password(str(error)))
    if isinstance(error, redis.exceptions.MaxConnectionsError):
        return UnavailableError("all connections of the client are in use: raise its max_connections")
    if isinstance(error, redis.exceptions.BusyLoadingError):
        return UnavailableError(f"the server is starting, the call was not run: {error}")
    if isinstance(error, redis.ResponseError) and not sent:
        return _from_greeting(error)
    if isinstance(error.__context__, redis.exceptions.ReadOnlyError):
        return ServerError(f"the server became a replica: {error}")
    if _is_turned_away(str(error)):
        return UnavailableError(f"the server takes no further connection, the call was not run: {error}")
    if sent:
        return ReplyLostError(
            f"the connection broke before the reply came, the call may have taken effect: {error}"
        )
    text = str(error).partition(" : <")[0]  # redis-py describes a Sentinel that is away by all its settings
    return UnavailableError(f"the server cannot be reached, nothing was sent: {text}")
