"""Changes of items that are made only if the items are as they were seen: for people, who have looked at them."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import redis

from leaseq import commands, errors
from leaseq._aio import concurrency
from leaseq._aio.executor import Executor
from leaseq.commands import Argument, Command
from leaseq.errors import ServerError
from leaseq.keys import QueueKeys
from leaseq.results import ItemInfo

T = TypeVar("T")

Entry = tuple[Argument, ...]

TRIES: Final = 200
"""Looks at items of a state whose items change all the time."""

PAUSE_SECS: Final = 0.002
"""Seconds between two looks."""


async def change_seen(
    executor: Executor,
    keys: QueueKeys,
    state: str,
    ids: Sequence[str],
    choose: Callable[[list[ItemInfo]], Sequence[str]],
    change: Callable[[QueueKeys, Sequence[str]], Command[list[T]]],
    *more: Entry,
) -> tuple[list[ItemInfo], list[T]]:
    """Change those items of a state that `choose` picks of what is known of `ids`, as they are at that moment.

    No item leaves a state without a change of its key, which is watched. `more` are plain commands of the same transaction. Return
    what was known, and the answers for the items that were picked. Raises ServerError if the queue never stood still.
    """
    for _ in range(TRIES):
        chosen: list[str] = []

        def entries(seen: list[ItemInfo], chosen: list[str] = chosen) -> list[Entry]:
            chosen += choose(seen)
            return [change(keys, chosen).eval(), *more] if chosen else []

        seen, replies = await executor.run_unless_changed(
            [keys.key(state)], commands.inspect(keys, ids), entries
        )
        if not chosen:
            return seen, []
        if replies is not None:
            answer: Any = replies[0]
            if isinstance(answer, redis.ResponseError):
                raise errors.from_server(answer) from answer
            return seen, change(keys, chosen).parse(answer)
        await concurrency.sleep(PAUSE_SECS)
    raise ServerError(
        f"the {state} items change all the time, so nothing was done: pause the queue, or try again"
    )
