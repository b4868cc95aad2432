"""Several waits at the same time: the first that wins is the answer.

Written by hand for threads and for asyncio.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_losing: set["asyncio.Task[object]"] = set()


async def race(
    runs: Sequence[Callable[[], Awaitable[T]]], won: Callable[[T], bool], undo: Callable[[int, T], None]
) -> tuple[int, T] | None:
    """Run all at once. Returns the place and answer of the first that wins, None if none does; raises what one of them raises.

    The others are interrupted. `undo` is called with the place and answer of each that wins too late.
    """
    tasks = [asyncio.create_task(_run(run)) for run in runs]
    pending, winner = set(tasks), None
    try:
        while pending and winner is None:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            winner = next((task for task in tasks if task in done and _wins(task, won)), None)
            if winner is None:
                for task in done:
                    task.result()
    finally:
        for index, task in enumerate(tasks):
            if task is not winner:
                _end(index, task, won, undo)
    return None if winner is None else (tasks.index(winner), winner.result())


async def _run(run: Callable[[], Awaitable[T]]) -> T:
    return await run()


def _wins(task: "asyncio.Task[T]", won: Callable[[T], bool]) -> bool:
    return not task.cancelled() and task.exception() is None and won(task.result())


def _end(
    index: int, task: "asyncio.Task[T]", won: Callable[[T], bool], undo: Callable[[int, T], None]
) -> None:
    """Interrupt a wait that has not won, and undo an answer that it has all the same."""

    def ended(task: "asyncio.Task[T]") -> None:
        _losing.discard(task)
        if _wins(task, won):
            undo(index, task.result())

    if task.done():
        ended(task)
        return
    _losing.add(task)
    task.add_done_callback(ended)
    task.cancel()
