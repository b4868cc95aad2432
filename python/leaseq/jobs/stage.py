"""A job that is not enqueued yet: what a chain has behind it, and what a schedule enqueues (LQ-JOB-12)."""

from typing import Any, cast

import msgspec

from leaseq.commands.adding import Options
from leaseq.commands.handoff import AddOptions
from leaseq.jobs.envelope import Envelope

_SECONDS = {"delay", "expires_in", "keep"}


class Stage(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The members of LQ-JOB-12. `add` are options of the item, by their names in `add` and in its units."""

    queue: str
    job: Envelope
    id: str = ""
    add: dict[str, int | str] = {}
    headers: dict[str, str] = {}

    def add_options(self) -> AddOptions:
        """The options as `WorkQueue.complete` takes them."""
        given: dict[str, Any] = {
            name: int(value) / 1000 if name in _SECONDS else value for name, value in self.add.items()
        }
        return cast("AddOptions", given)


def added_with(options: Options) -> dict[str, int | str]:
    """Options of an item by their names."""
    return {str(name): value for name, value in zip(options[::2], options[1::2], strict=True)}


def options_of(stage: Stage) -> Options:
    """The options as `add` takes them."""
    return tuple(word for pair in stage.add.items() for word in pair)
