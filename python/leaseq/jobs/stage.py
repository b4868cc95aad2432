"""A job that is not enqueued yet: its options, in both of their forms."""

from typing import Any, cast

from leaseq.commands.additions import Options
from leaseq.commands.handoff import AddOptions
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
    return tuple(word for pair in stage.add.items() for word in pair)


def named(options: Options) -> dict[str, int | str]:
    """Options of an item by their names."""
    given = {str(name): value for name, value in zip(options[::2], options[1::2], strict=True)}
    return cast("dict[str, int | str]", given)
