"""Dead letters: items that wait for a person."""

from collections.abc import Awaitable, Callable, Iterable

from leaseq import commands, flows
from leaseq._aio.looking import Looking
from leaseq._scripts import MAX_ENTRIES
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.results import ItemInfo


class DeadLetters(Looking):
    """The part of a queue that shows dead letters, puts them back and drops them."""

    async def dead_letters(
        self, *, offset: int = 0, limit: int = 100, backward: bool = False
    ) -> list[ItemInfo]:
        """One page of the dead items with attempts, times and last errors, first died first; `limit` is 1..256."""
        page = await self.list_items("dead", offset=offset, limit=limit, backward=backward)
        infos = await self.inspect_items([listed.id for listed in page.items])
        return [info for info in infos if info.state == "dead"]

    async def revive(self, item_id: str) -> bool:
        """Make a dead item ready again, its attempts begun anew; false if it was not dead. Safe to repeat."""
        return (await self.revive_items([item_id]))[0]

    async def revive_items(self, ids: Iterable[str]) -> list[bool]:
        """Make many dead items ready again; answers for each, in order. See `revive`."""
        return await self._in_chunks(
            flows.chunks(flows.many(ids, "ids")), lambda chunk: commands.revive(self._keys, chunk)
        )

    async def revive_all(self, matching: str | None = None) -> int:
        """Make all dead items ready again, or those whose last error contains `matching`; answers how many.

        Page by page; what dies while it runs stays dead. Safe to repeat.
        """
        if matching is not None and not isinstance(matching, str):
            message = f"matching must be a str, not {type(matching).__name__}"
            raise BadTypeError(message)

        async def revive(ids: list[str]) -> int:
            infos = [] if matching is None else await self.inspect_items(ids)
            chosen = ids if matching is None else [info.id for info in infos if matching in info.error]
            return sum(await self.revive_items(chosen))

        return await self._all_dead((await self.stats()).now, revive)

    async def purge(self, item_id: str, *, older_than: float = 0) -> bool:
        """Drop an item that has been dead for `older_than` seconds; false if there is none. Safe to repeat."""
        return (await self.purge_items([item_id], older_than=older_than))[0]

    async def purge_items(self, ids: Iterable[str], *, older_than: float = 0) -> list[bool]:
        """Drop many dead items, those that have been dead for `older_than` seconds; answers for each, in order."""
        return await self._in_chunks(
            flows.chunks(flows.many(ids, "ids")),
            lambda chunk: commands.purge(self._keys, chunk, older_than),
        )

    async def purge_all(self, older_than: float = 0) -> int:
        """Drop all items that have been dead for `older_than` seconds; answers how many.

        Page by page; what dies while it runs stays. Safe to repeat.
        """
        if commands.milliseconds(older_than, "older_than") < 0:
            raise BadArgumentError("older_than must not be negative; 0 drops all")

        async def purge(ids: list[str]) -> int:
            answers = await self._transport.run(commands.purge(self._keys, ids, older_than))
            return sum(answers)

        return await self._all_dead((await self.stats()).now - older_than, purge)

    async def _all_dead(self, until: float, take: Callable[[list[str]], Awaitable[int]]) -> int:
        """Take out of what had died at that time, page by page; answers how many in all.

        Others may revive and purge at the same time, and what they take out moves the pages: once more, until a pass
        finds none, with nobody else at work.
        """
        done = 0
        while True:
            page = await self.list_items("dead", limit=MAX_ENTRIES)
            before, taken, offset = page.total, 0, 0
            while ids := [listed.id for listed in page.items if listed.time <= until]:
                count = await take(ids)
                taken += count
                offset += len(ids) - count
                page = await self.list_items("dead", offset=offset, limit=MAX_ENTRIES)
            done += taken
            if not taken and page.total >= before:
                return done
