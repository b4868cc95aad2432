"""The entries of calls and the shape of replies, as the reference model takes and gives them."""

from __future__ import annotations

from dataclasses import dataclass

Answer = int | bytes
Reply = Answer | list[Answer]


@dataclass(frozen=True)
class Add:
    """An entry of add; the times are milliseconds."""

    id: bytes
    data: bytes = b""
    delay: int | None = None
    not_before: int | None = None
    priority: int | None = None
    max_attempts: int | None = None

    def argv(self) -> list[Answer]:
        """The entry as it is sent."""
        names = ("delay", "not_before", "priority", "max_attempts")
        return [self.id, self.data, *_options({name: getattr(self, name) for name in names})]


@dataclass(frozen=True)
class Complete:
    """An entry of complete and of complete_and_lease."""

    id: bytes
    token: int
    only_current: bool = False

    def argv(self) -> list[Answer]:
        """The entry as it is sent."""
        return [self.id, self.token, *_options({"only_current": 1 if self.only_current else None})]


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

    def argv(self) -> list[Answer]:
        """The entry as it is sent."""
        options = {"delay": self.delay, "uncounted": 1 if self.uncounted else None}
        return [self.id, self.token, *_options(options)]


def _options(options: dict[str, int | None]) -> list[Answer]:
    given = {name: value for name, value in options.items() if value is not None}
    return [len(given), *(text for name, value in given.items() for text in (name.encode(), value))]
