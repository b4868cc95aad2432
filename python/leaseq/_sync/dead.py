# Generated from _aio/dead.py by python/unasync.py: do not edit.
"""Dead letters: items that wait for a person."""

from collections.abc import Callable, Iterable

from leaseq import commands, flows
from leaseq._scripts import MAX_ENTRIES
from leaseq._sync.looking import Looking
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.results import ItemInfo


class DeadLetters(Looking):
    """The part of a queue that shows dead letters, puts them back and drops them."""

    def dead_letters(self, *, offset: int = 0, limit: int = 100, backward: bool = False) -> list[ItemInfo]:
        """One page of the dead items with attempts, times and last errors, first died first; `limit` is 1..256."""
        page = self.list_items("dead", offset=offset, limit=limit, backward=backward)
        infos = self.inspect_items([listed.id for listed in page.items])
        return [info for info in infos if info.state == "dead"]

    def revive(self, item_id: str) -> bool:
        """Make a dead item ready again, its attempts begun anew; false if it was not dead. Safe to repeat."""
        return (self.revive_items([item_id]))[0]

    def revive_items(self, ids: Iterable[str]) -> list[bool]:
        """Make many dead items ready again; answers for each, in order. See `revive`."""
        return self._in_chunks(
            flows.chunks(flows.many(ids, "ids")), lambda chunk: commands.revive(self._keys, chunk)
        )

    def revive_all(self, matching: str | None = None) -> int:
        """Make all dead items ready again, or those whose last error contains `matching`; answers how many.

        Page by page; what dies while it runs stays dead. Safe to repeat.
        """
        if matching is not None and not isinstance(matching, str):
            message = f"matching must be a str, not {type(matching).__name__}"
            raise BadTypeError(message)

        def revive(ids: list[str]) -> int:
            infos = [] if matching is None else self.inspect_items(ids)
            chosen = ids if matching is None else [info.id for info in infos if matching in info.error]
            return sum(self.revive_items(chosen))

        return self._all_dead((self.stats()).now, revive)

    def purge(self, item_id: str, *, older_than: float = 0) -> bool:
        """Drop an item that has been dead for `older_than` seconds; false if there is none. Safe to repeat."""
        return (self.purge_items([item_id], older_than=older_than))[0]

    def purge_items(self, ids: Iterable[str], *, older_than: float = 0) -> list[bool]:
        """Drop many dead items, those that have been dead for `older_than` seconds; answers for each, in order."""
        return self._in_chunks(
            flows.chunks(flows.many(ids, "ids")),
            lambda chunk: commands.purge(self._keys, chunk, older_than),
        )

    def purge_all(self, older_than: float = 0) -> int:
        """Drop all items that have been dead for `older_than` seconds; answers how many.

        Page by page; what dies while it runs stays. Safe to repeat.
        """
        if commands.milliseconds(older_than, "older_than") < 0:
            raise BadArgumentError("older_than must not be negative; 0 drops all")

        def purge(ids: list[str]) -> int:
            answers = self._transport.run(commands.purge(self._keys, ids, older_than))
            return sum(answers)

        return self._all_dead((self.stats()).now - older_than, purge)

    def _all_dead(self, until: float, take: Callable[[list[str]], int]) -> int:
        """Take out of what had died at that time, page by page; answers how many in all.

        Others may revive and purge at the same time, and what they take out moves the pages: once more, until a pass
        finds none, with nobody else at work.
        """
        done = 0
        while True:
            page = self.list_items("dead", limit=MAX_ENTRIES)
            before, taken, offset = page.total, 0, 0
            while ids := [listed.id for listed in page.items if listed.time <= until]:
                count = take(ids)
                taken += count
                offset += len(ids) - count
                page = self.list_items("dead", offset=offset, limit=MAX_ENTRIES)
            done += taken
            if not taken and page.total >= before:
                return done
