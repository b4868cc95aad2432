"""Exceptions that are hard to tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leaseq.jobs import DeadLetter, Retry

if TYPE_CHECKING:
    from collections.abc import Callable


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class ExitsError(Exception):
    def __str__(self) -> str:
        raise SystemExit


class NumericError(Exception):
    def __str__(self) -> Any:
        return 5  # noqa: PLE0307


class NotedError(Exception):
    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        raise ValueError("no notes")


class Silent:
    def __repr__(self) -> str:
        raise ValueError("no text")


def noted(notes: Any) -> ValueError:
    error = ValueError("with notes")
    vars(error)["__notes__"] = notes
    return error


def deep() -> ValueError:
    error = ValueError("deep")
    latest: BaseException = error
    for number in range(3000):
        latest.__context__ = ValueError(number)
        latest = latest.__context__
    return error


def nested() -> ExceptionGroup[Any]:
    group: ExceptionGroup[Any] = ExceptionGroup("inner", [ValueError(1)])
    for _ in range(3000):
        group = ExceptionGroup("outer", [group])
    return group


def local() -> Exception:
    class LocalError(Exception):
        pass

    return LocalError("a local class")


ERRORS: dict[str, tuple[Callable[[], BaseException], str, str]] = {
    "surrogate": (lambda: ValueError("\ud83d"), "ValueError", r"\ud83d"),
    "mute": (MuteError, "MuteError", "<str() of MuteError raised ValueError>"),
    "exits": (ExitsError, "ExitsError", "<str() of ExitsError raised SystemExit>"),
    "no str": (NumericError, "NumericError", "<str() of NumericError raised TypeError>"),
    "no repr": (lambda: KeyError(Silent()), "KeyError", "<str() of KeyError raised ValueError>"),
    "huge": (lambda: ValueError("huge " * 1_000_000), "ValueError", "huge huge"),
    "notes": (lambda: noted([5, Silent(), "\ud83d"]), "ValueError", "with notes"),
    "no notes": (lambda: noted(Silent()), "ValueError", "with notes"),
    "notes that raise": (lambda: NotedError("noted"), "NotedError", "noted"),
    "many lines": (lambda: ValueError("a\n\nb: c\r\x00"), "ValueError", "a b: c \x00"),
    "group": (
        lambda: ExceptionGroup("several", [MuteError(), ValueError("\ud83d")]),
        "ExceptionGroup",
        "several",
    ),
    "nested": (nested, "ExceptionGroup", "outer"),
    "deep": (deep, "ValueError", "deep"),
    "recursion": (RecursionError, "RecursionError", ""),
    "local": (local, "LocalError", "a local class"),
    "dead": (lambda: DeadLetter(MuteError()), "DeadLetter", "<str() of MuteError raised ValueError>"),  # type: ignore[arg-type]
    "dead surrogate": (lambda: DeadLetter("\ud83d"), "DeadLetter", r"\ud83d"),
    "retry": (lambda: Retry(MuteError()), "Retry", "<str() of Retry raised ValueError>"),  # type: ignore[arg-type]
}
"""By name: what makes it, the last part of its class's name, and the part of its message that is reported."""


def raise_error(name: str) -> None:
    make, _, _ = ERRORS[name]
    raise make()
