"""A job that is not enqueued yet: its options, in both of their forms."""

from typing import Any, cast

from leaseq.commands.additions import Options
from leaseq.commands.completions import AddOptions
from leaseq.jobs.envelope import Stage

_SECONDS = {"delay", "expires_in", "keep"}


def followed_with(stage: Stage) -> AddOptions:
    """The options as `WorkQueue.complete` takes them."""
    given: dict[str, Any] = {
        name: int(value) / 1000 if name in _SECONDS else value for name, value in stage.add.items()
    }
    return cast("AddOptions", given)


def options_of(stage: Stage) -> Options:
    """The options as `add` takes them."""
    return tuple(str(word) for pair in stage.add.items() for word in pair)


def named(options: Options) -> dict[str, int | str]:
    """Options of an item by their names; in an envelope a number is a number."""
    words = [str(word) for word in options]
    return {name: _number(word) for name, word in zip(words[::2], words[1::2], strict=True)}


def _number(word: str) -> int | str:
    return int(word) if word.removeprefix("-").isdecimal() else word
