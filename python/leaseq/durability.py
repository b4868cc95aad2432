"""Waits behind a call: until replicas or disks have it."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

import hiredis

from leaseq.durations import Duration, seconds
from leaseq.errors import BadArgumentError, BadTypeError, NotDurableError

T = TypeVar("T")
U = TypeVar("U")

_MOST_SERVERS = 1_000


@dataclass(frozen=True, slots=True)
class _Durability:
    """A wait for other servers.

    Attributes:
        wait_secs: how long the server waits.
        packed: the bytes of the command behind the call.
    """

    name: ClassVar[str]
    """The command of the server."""
    probe: ClassVar[tuple[str, ...]]
    """The same command, which shows at once whether the server can do that."""

    wait_secs: float = field(init=False, repr=False, compare=False)
    packed: bytes = field(init=False, repr=False, compare=False)

    @property
    def wanted(self) -> int:
        """The number of servers that are to have the call."""
        raise NotImplementedError

    def reached(self, reply: Any) -> int:
        """Return the number of servers that have the call, as `wanted` counts them."""
        raise NotImplementedError

    def _prepare(self, timeout: Duration, *servers: int) -> None:
        """Check the time and pack the command."""
        wait_secs = seconds(timeout, "timeout")
        milliseconds = round(wait_secs * 1000)
        if milliseconds < 1:
            raise BadArgumentError(
                f"timeout must be at least 0.001 seconds, not {wait_secs:g}: the server would wait without limit"
            )
        words = (self.name, *map(str, servers), str(milliseconds))
        object.__setattr__(self, "wait_secs", wait_secs)
        object.__setattr__(self, "packed", cast("Any", hiredis).pack_command(words))


@dataclass(frozen=True, slots=True)
class Replicas(_Durability):
    """For `durable=`: wait behind the call until `count` replicas have it, at most `timeout` seconds (or a timedelta).

    The replicas have it in memory. The server waits with WAIT, on the connection of the call.

    Attributes:
        count: the number of replicas, 1 to 1000.
        timeout: how long to wait, from 0.001 s on.

    Raises BadArgumentError, BadTypeError.
    """

    name = "WAIT"
    probe = ("WAIT", "0", "1")

    count: int
    timeout: Duration = field(kw_only=True)

    def __post_init__(self) -> None:
        self._prepare(self.timeout, _servers(self.count, "count", 1))

    @property
    def wanted(self) -> int:
        """The number of replicas that are to have the call."""
        return self.count

    def reached(self, reply: Any) -> int:
        """Return the number of replicas that have the call."""
        return int(reply)


@dataclass(frozen=True, slots=True)
class Disk(_Durability):
    """For `durable=`: wait behind the call until it is on disk, at most `timeout` seconds (or a timedelta).

    That is the disk of the primary and, with `replicas`, those of that many replicas. The server waits with WAITAOF, on the
    connection of the call. It is Redis or Valkey 7.2 or later, with an append-only file.

    Attributes:
        timeout: how long to wait, from 0.001 s on.
        replicas: the number of replicas, up to 1000.

    Raises BadArgumentError, BadTypeError.
    """

    name = "WAITAOF"
    probe = ("WAITAOF", "1", "0", "1")

    timeout: Duration = field(kw_only=True)
    replicas: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        self._prepare(self.timeout, 1, _servers(self.replicas, "replicas", 0))

    @property
    def wanted(self) -> int:
        """The number of disks that are to have the call."""
        return 1 + self.replicas

    def reached(self, reply: Any) -> int:
        """Return the number of disks that have the call; further replicas do not stand in for the primary."""
        of_primary, of_replicas = reply
        return int(of_primary) + min(int(of_replicas), self.replicas)


Durability = Replicas | Disk
"""A wait behind the call, for replicas or for disks: the values of `durable=`. See [durable calls](durability.md)."""


class Confirmed(NamedTuple, Generic[T]):
    """The answer of a call that waited, and the error if too few servers have it."""

    answer: T
    shortfall: NotDurableError | None

    @classmethod
    def of(cls, answer: T, durable: "Durability", reached: int | None, reason: str) -> "Confirmed[T]":
        """Judge what the wait brought; `reason` says why `reached` is unknown."""
        if reached is not None and reached >= durable.wanted:
            return cls(answer, None)
        found = (
            reason
            if reached is None
            else f"{reached} of {durable.wanted} have it after {durable.wait_secs:g} s"
        )
        return cls(
            answer,
            NotDurableError(
                f"the call was done, but {durable!r} is not reached: {found}", durable.wanted, reached
            ),
        )

    def delivered(self, answers: list[U]) -> list[U]:
        """Return the answers, one for each entry of the call. Raises NotDurableError, which has them."""
        if self.shortfall is not None:
            self.shortfall.answers = list(answers)
            raise self.shortfall
        return answers

    def delivered_one(self, answer: U) -> U:
        """Return the answer of a call of one entry. Raises NotDurableError, which has it."""
        if self.shortfall is not None:
            self.shortfall.answer = answer
            raise self.shortfall
        return answer


def checked(durable: Durability) -> Durability:
    """Return what `durable=` was given. Raises BadTypeError."""
    if not isinstance(durable, Replicas | Disk):
        raise BadTypeError(
            f"durable takes leaseq.Replicas(1, timeout=0.5) or leaseq.Disk(timeout=1), not {type(durable).__name__}"
        )
    return durable


def _servers(count: int, what: str, least: int) -> int:
    """Return a number of servers. Raises BadTypeError, BadArgumentError."""
    if isinstance(count, bool) or not isinstance(count, int):
        raise BadTypeError(f"{what} must be an int, not {type(count).__name__}")
    if not least <= count <= _MOST_SERVERS:
        raise BadArgumentError(f"{what} must be {least} to {_MOST_SERVERS}, not {count}")
    return count
