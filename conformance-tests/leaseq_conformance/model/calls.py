"""The entries of calls and the shape of replies, as the reference model takes and gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Answer = int | bytes
Reply = Answer | list[Answer]
Pairs = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True)
class Add:
    """An entry of add; the times are milliseconds."""

    id: bytes
    data: bytes = b""
    delay: int | None = None
    not_before: int | None = None
    priority: int | None = None
    max_attempts: int | None = None
    expires_in: int | None = None
    dies: bool = False
    keep: int | None = None
    content_type: bytes | None = None
    headers: Pairs = ()

    def pairs(self) -> Pairs:
        """Return what goes into the extra, by its option names."""
        typed: Pairs = () if self.content_type is None else ((b"content_type", self.content_type),)
        return (*typed, *((b"header:" + name, value) for name, value in self.headers))

    def argv(self) -> list[Answer]:
        """The entry as it is sent."""
        names = ("delay", "not_before", "priority", "max_attempts", "expires_in", "keep")
        numbers: dict[bytes, Answer | None] = {name.encode(): getattr(self, name) for name in names}
        dies = b"dead" if self.dies else None
        return [self.id, self.data, *_options({**numbers, b"expires_to": dies, **dict(self.pairs())})]


@dataclass(frozen=True)
class Complete:
    """An entry of complete and of complete_and_lease."""

    id: bytes
    token: int
    only_current: bool = False

    def argv(self) -> list[Answer]:
        """The entry as it is sent."""
        return [self.id, self.token, *_options({b"only_current": 1 if self.only_current else None})]


@dataclass(frozen=True)
class Finish:
    """An entry of complete_with; `then` has the number of a target, from 1 on, with each follow-up."""

    id: bytes
    token: int
    only_current: bool = False
    keep: int | None = None
    result: bytes | None = None
    then: tuple[tuple[int, Add], ...] = ()

    def argv(self) -> list[Answer]:
        """The entry as it is sent."""
        only = 1 if self.only_current else None
        options = _options({b"only_current": only, b"keep": self.keep, b"result": self.result})
        follow_ups = [part for target, add in self.then for part in (target, *add.argv())]
        return [self.id, self.token, *options, len(self.then), *follow_ups]


@dataclass(frozen=True)
class Extend:
    """An entry of extend."""

    id: bytes
    token: int
    duration: int

    def argv(self) -> list[Answer]:
        """The entry as it is sent."""
        return [self.id, self.token, self.duration]


@dataclass(frozen=True)
class Release:
    """An entry of release."""

    id: bytes
    token: int
    delay: int | None = None
    uncounted: bool = False
    error: bytes | None = None
    dead: bool = False
    keep: int | None = None

    def argv(self) -> list[Answer]:
        """The entry as it is sent."""
        options = {
            b"delay": self.delay,
            b"uncounted": 1 if self.uncounted else None,
            b"error": self.error,
            b"dead": 1 if self.dead else None,
            b"keep": self.keep,
        }
        return [self.id, self.token, *_options(options)]


def _options(options: Mapping[bytes, Answer | None]) -> list[Answer]:
    given = {name: value for name, value in options.items() if value is not None}
    return [len(given), *(text for name, value in given.items() for text in (name, value))]
