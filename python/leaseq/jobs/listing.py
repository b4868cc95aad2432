"""What became of many jobs: their states, and what is known of those in one state."""

from collections.abc import Iterable
from typing import Any, Literal

from leaseq.errors import BadArgumentError
from leaseq.jobs import info
from leaseq.jobs.base import AppBase, by_queue
from leaseq.jobs.handle import Handle
from leaseq.jobs.info import JobInfo, Status

ListState = Literal["ready", "delayed", "running", "failed", "finished"]

_LISTS: dict[str, Literal["ready", "delayed", "leased", "dead", "kept"]] = {
    "ready": "ready",
    "delayed": "delayed",
    "running": "leased",
    "failed": "dead",
    "finished": "kept",
}


class Listing(AppBase):
    """The part of an App that looks at jobs."""

    def statuses(self, handles: Iterable[Handle[Any]]) -> list[Status]:
        """The status of many jobs, in order: two round trips for each queue and 256 of them.

        As many more to find those that were found again by their ids, where the App knows several queues.
        """
        given = self._found(handles)
        found: dict[int, Status] = {}
        for queue, numbers in by_queue(handle.queue for handle in given).items():
            told = self._store.outcomes(queue, [given[number].id for number in numbers])
            found.update(zip(numbers, (info.status_of(*one) for one in told), strict=True))
        return [found[number] for number in range(len(given))]

    async def astatuses(self, handles: Iterable[Handle[Any]]) -> list[Status]:
        """`statuses` for asyncio."""
        given = await self._afound(handles)
        found: dict[int, Status] = {}
        for queue, numbers in by_queue(handle.queue for handle in given).items():
            told = await self._astore.outcomes(queue, [given[number].id for number in numbers])
            found.update(zip(numbers, (info.status_of(*one) for one in told), strict=True))
        return [found[number] for number in range(len(given))]

    def infos(self, handles: Iterable[Handle[Any]]) -> list[JobInfo]:
        """All that is known of many jobs, in order: four round trips for each queue and 256 of them, as `statuses`."""
        given = self._found(handles)
        found: dict[int, JobInfo] = {}
        for queue, numbers in by_queue(handle.queue for handle in given).items():
            told = self._store.told(queue, [given[number].id for number in numbers])
            found.update(zip(numbers, (self._info(queue, one) for one in told), strict=True))
        return [found[number] for number in range(len(given))]

    async def ainfos(self, handles: Iterable[Handle[Any]]) -> list[JobInfo]:
        """`infos` for asyncio."""
        given = await self._afound(handles)
        found: dict[int, JobInfo] = {}
        for queue, numbers in by_queue(handle.queue for handle in given).items():
            told = await self._astore.told(queue, [given[number].id for number in numbers])
            found.update(zip(numbers, (self._info(queue, one) for one in told), strict=True))
        return [found[number] for number in range(len(given))]

    def _found(self, handles: Iterable[Handle[Any]]) -> list[Handle[Any]]:
        """The same, each knowing its queue."""
        given = list(handles)
        lost = [handle for handle in given if not handle.queue]
        for handle, queue in zip(lost, self._store.places(self.queues, _ids(lost)), strict=True):
            handle.queue = queue
        return given

    async def _afound(self, handles: Iterable[Handle[Any]]) -> list[Handle[Any]]:
        """`_found` for asyncio."""
        given = list(handles)
        lost = [handle for handle in given if not handle.queue]
        for handle, queue in zip(lost, await self._astore.places(self.queues, _ids(lost)), strict=True):
            handle.queue = queue
        return given

    def jobs(
        self, state: ListState, *, queue: str | None = None, offset: int = 0, limit: int = 100
    ) -> list[JobInfo]:
        """One page of the jobs of a queue, next first, with all that is known of each; `limit` is 1..256.

        "finished" are those whose result or failure is kept, that which goes first first. Five round trips.
        """
        name = queue or self._defaults.queue
        ids = self._store.listed(name, _list(state), offset, limit)
        return [self._info(name, told) for told in self._store.told(name, ids)]

    async def ajobs(
        self, state: ListState, *, queue: str | None = None, offset: int = 0, limit: int = 100
    ) -> list[JobInfo]:
        """`jobs` for asyncio."""
        name = queue or self._defaults.queue
        ids = await self._astore.listed(name, _list(state), offset, limit)
        return [self._info(name, told) for told in await self._astore.told(name, ids)]


def _ids(handles: Iterable[Handle[Any]]) -> list[str]:
    return [handle.id for handle in handles]


def _list(state: str) -> Literal["ready", "delayed", "leased", "dead", "kept"]:
    if state not in _LISTS:
        raise BadArgumentError(f"jobs are listed by state: {', '.join(_LISTS)}; not {state!r}")
    return _LISTS[state]
