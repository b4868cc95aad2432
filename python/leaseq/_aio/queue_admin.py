"""A queue as its operators see it, and what all calls share: its server, running commands, closing."""

import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Self, TypeVar

from leaseq import commands, flows
from leaseq._aio import concurrency
from leaseq._aio.executor import Executor, Registration
from leaseq._aio.gatherer import gather_adds
from leaseq._aio.heartbeater import Heartbeater
from leaseq._aio.lifecycle import Lifecycle
from leaseq._aio.pages import remove_listed
from leaseq._aio.server_handle import ServerHandle
from leaseq.commands import Command
from leaseq.durability import Durability, checked
from leaseq.durations import Duration, seconds
from leaseq.errors import BadArgumentError, BadTypeError, LeaseqError
from leaseq.keys import NamedQueue, QueueKeys
from leaseq.results import DeepClean, ItemInfo, LightClean, ListState, Page, QueueStats, State

T = TypeVar("T")
Member = TypeVar("Member")


class QueueAdmin(NamedQueue):
    """The part of a queue that shows what is there, takes items out, puts dead letters back and keeps it in order."""

    def __init__(
        self,
        name: str,
        server: str | concurrency.Client | None = None,
        *,
        group: str | None = None,
        durable: Durability | None = None,
    ) -> None:
        super().__init__(QueueKeys(name, group))
        self.durable = None if durable is None else checked(durable)
        opened = ServerHandle(server, f"queue {name!r}", "WorkQueue(name, 'redis://localhost')")
        self._server = opened
        self.place = opened.route.place
        self.executor = Executor(
            opened.client, self.keys.key("state"), [Registration(self.keys)], Lifecycle(name)
        )
        self.adds = gather_adds(self.executor)
        self.heartbeater = Heartbeater(self.executor, self.keys)

    async def close(self) -> None:
        """Close the queue: waiting calls raise QueueClosedError, and so does every later call.

        Items that you hold stay leased until their deadlines. If the call is interrupted, for example by a time limit,
        repeat it to close the rest.
        """
        await self.heartbeater.end()
        await self.executor.close()
        await self._server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} {self.name!r}>"

    async def _in_chunks(
        self, chunks: Iterable[list[Member]], call: Callable[[list[Member]], Awaitable[list[T]]]
    ) -> list[T]:
        """Make a call for each chunk; one answer for each member. An error has the answers so far."""
        answers: list[T] = []
        chunk: list[Member] = []
        try:
            for chunk in chunks:
                answers += await call(chunk)
        except LeaseqError as error:
            error.answers = [*answers, *error.answers]
            error.in_doubt = len(chunk)
            raise
        return answers

    async def _of_each(
        self, ids: Iterable[str], command: Callable[[QueueKeys, Sequence[str]], Command[list[T]]]
    ) -> list[T]:
        """Run a call for each 256 ids. Return its answer for each id, in order."""
        chunks = flows.chunks(flows.require_iterable(ids, "ids"))
        return await self._in_chunks(chunks, lambda chunk: self.executor.run(command(self.keys, chunk)))

    async def queue_len(self) -> int:
        """Return the number of items that wait: ready and delayed.

        Together with `processing` these are all items except dead ones.
        """
        stats = await self.stats()
        return stats.ready + stats.delayed

    async def processing(self) -> int:
        """Return the number of leased items, including those whose lease has expired and is not reclaimed yet."""
        return (await self.stats()).leased

    async def stats(self) -> QueueStats:
        """Return the counts by state, the cumulative counters, and the limits."""
        return await self.executor.run(commands.stats(self.keys))

    async def inspect(self, item_id: str) -> ItemInfo:
        """Return an item's state, attempts, token, times, size and last error.

        The state is "absent" if there is no such item.
        """
        return (await self.inspect_items([item_id]))[0]

    async def inspect_items(self, ids: Iterable[str]) -> list[ItemInfo]:
        """Return the same as `inspect` for many items, in order."""
        return await self._of_each(ids, commands.inspect)

    async def list_items(
        self, state: ListState, *, offset: int = 0, limit: int = 100, backward: bool = False
    ) -> Page:
        """Return one page of the items in a state: "ready", "delayed", "leased" or "dead"; or of the "kept" outcomes.

        Skips `offset` entries and has up to `limit` (1..256). Ready items are in the order in which they will be leased,
        others by their `time`, the earliest first; `backward` reverses that. Raises BadArgumentError, BadTypeError.
        """
        return await self.executor.run(
            commands.list_items(self.keys, state, offset, limit, backward=backward)
        )

    async def dead_letters(
        self, *, offset: int = 0, limit: int = 100, backward: bool = False
    ) -> list[ItemInfo]:
        """Return one page of the dead items, with attempts, times and last errors.

        The item that died first comes first; `backward` reverses that. Skips `offset` items and has up to `limit`
        (1..256). Raises BadArgumentError, BadTypeError.
        """
        page = await self.list_items("dead", offset=offset, limit=limit, backward=backward)
        infos = await self.inspect_items([entry.id for entry in page.items])
        return [info for info in infos if info.state == "dead"]

    async def revive(self, item_id: str) -> bool:
        """Make a dead item ready again, with 0 attempts. Return false if it was not dead. Safe to repeat."""
        return (await self.revive_items([item_id]))[0]

    async def revive_items(self, ids: Iterable[str]) -> list[bool]:
        """Make many dead items ready again. Return an answer for each, in order; see `revive`."""
        return await self._of_each(ids, commands.revive)

    async def revive_all(self, matching: str | None = None) -> int:
        """Make all dead items ready again, or those whose last error contains `matching`. Return their number.

        Works page by page; items that die meanwhile stay dead. Safe to repeat. Raises BadTypeError.
        """
        if matching is not None and not isinstance(matching, str):
            raise BadTypeError(f"matching must be a str, not {type(matching).__name__}")

        async def revive(ids: list[str]) -> int:
            infos = [] if matching is None else await self.inspect_items(ids)
            chosen = ids if matching is None else [info.id for info in infos if matching in info.error]
            return sum(await self.revive_items(chosen))

        return await remove_listed(partial(self.list_items, "dead"), revive, (await self.stats()).now)

    async def promote(self, item_id: str) -> bool:
        """Make a delayed item ready now, with its attempts. Return false if it was not delayed. Safe to repeat."""
        return (await self.promote_items([item_id]))[0]

    async def promote_items(self, ids: Iterable[str]) -> list[bool]:
        """Make many delayed items ready now. Return an answer for each, in order; see `promote`."""
        return await self._of_each(ids, commands.promote)

    async def purge(self, item_id: str, *, older_than: Duration = 0) -> bool:
        """Delete an item that has been dead for at least `older_than` seconds. Return false if it has not.

        Safe to repeat. A kept failure stays until its time.
        """
        return (await self.purge_items([item_id], older_than=older_than))[0]

    async def purge_items(self, ids: Iterable[str], *, older_than: Duration = 0) -> list[bool]:
        """Delete many items that have been dead for at least `older_than` seconds.

        Return an answer for each, in order; see `purge`.
        """
        return await self._of_each(ids, partial(commands.purge, older_than=older_than))

    async def purge_all(self, older_than: Duration = 0, *, keep_newest: int = 0) -> int:
        """Delete all items that have been dead for at least `older_than` seconds, except the `keep_newest` last to die.

        Returns their number. Works page by page; items that die meanwhile stay, and so do those that died at the same
        moment as the oldest that is kept. Safe to repeat. Raises BadArgumentError, BadTypeError.
        """
        age = seconds(older_than, "older_than")
        if age < 0:
            raise BadArgumentError("older_than must not be negative; 0 drops all")
        if commands.whole(keep_newest, "keep_newest") < 0:
            raise BadArgumentError("keep_newest must not be negative; 0 keeps none")
        stats = await self.stats()
        until = stats.now - age
        if keep_newest:
            surplus = stats.dead - keep_newest
            kept = (await self.list_items("dead", offset=surplus, limit=1)).items if surplus > 0 else []
            if not kept:
                return 0
            until = min(until, math.nextafter(kept[0].time, 0))

        async def purge(ids: list[str]) -> int:
            answers = await self.executor.run(commands.purge(self.keys, ids, age))
            return sum(answers)

        return await remove_listed(partial(self.list_items, "dead"), purge, until)

    async def remove(self, item_id: str) -> State:
        """Remove an item in any state. Return the state that it was in; "absent" if there was none.

        A worker that holds the item finds out at its next call: `extend` and `complete` return false. An outcome stays.
        """
        return (await self.remove_items([item_id]))[0]

    async def remove_items(self, ids: Iterable[str]) -> list[State]:
        """Remove many items. Return an answer for each, in order; see `remove`."""
        return await self._of_each(ids, commands.remove)

    async def light_clean(self) -> LightClean:
        """Requeue items whose lease expired, promote due items, and end expired items and outcomes. Return the counts.

        Works in steps of up to 256 of each. Safe to repeat, at any time.
        """
        done = LightClean()
        while True:
            step = await self.executor.run(commands.light_clean(self.keys, 256))
            done = done.plus(step.done)
            await self.executor.publish(step.died)
            if step.wait != 0:
                return done

    async def deep_clean(self, *, dry_run: bool = False) -> DeepClean:
        """Look through the whole queue for damage and repair it, page by page, while traffic runs (LQ-DEEP-1).

        Returns the number of repairs by kind of damage. With `dry_run` nothing is written: it counts the repairs that it
        would make.
        """
        done = DeepClean()
        cursor = "0"
        while True:
            cursor, page = await self.deep_clean_page(cursor, dry_run=dry_run)
            done = done.plus(page)
            if cursor == "0":
                return done

    async def deep_clean_page(
        self, cursor: str = "0", *, limit: int = 256, dry_run: bool = False
    ) -> tuple[str, DeepClean]:
        """Run one page of `deep_clean`. Return the cursor of the next page, "0" after the last, and the repairs.

        Use it to pause between pages. `limit` is roughly the number of entries to look at, 1..256. Safe to repeat
        with the same cursor, at any time, after any error.
        """
        return await self.executor.run(commands.deep_clean(self.keys, cursor, limit, dry_run=dry_run))

    async def pause(self) -> None:
        """Stop leasing until `resume`, for all clients of the queue. Adding, completing and all other calls still work."""
        await self.executor.run(commands.configure(self.keys, paused=True))

    async def resume(self) -> None:
        """End a pause: waiting workers get items at once."""
        await self.executor.run(commands.configure(self.keys, paused=False))

    async def configure(
        self, *, max_data: int | None = None, max_items: int | None = None, max_attempts: int | None = None
    ) -> None:
        """Set limits for all clients of the queue. Settings that are not given stay, and so do the items in the queue.

        `max_data` is the most bytes of an item's data (1 byte to 512 MiB; 1 MiB until it is set). `max_items` is the most
        items that the queue holds, not counting dead ones (0: no limit); when it is reached, `add_item` raises
        QueueFullError. `max_attempts` is the number of leases after which an item becomes a dead letter, unless the item
        was added with another limit (0: never). Raises BadArgumentError, also without any setting, and BadTypeError.
        """
        command = commands.configure(
            self.keys, max_data=max_data, max_items=max_items, max_attempts=max_attempts
        )
        await self.executor.run(command)

    async def delete(self) -> bool:
        """Delete the queue with its settings and counters, and take it out of the registry. Return false if there was no queue.

        The queue must be empty: raises QueueInUseError if it holds items, dead ones included, or outcomes, or if its clock is
        ahead of the server's (LQ-DELETE-1); nothing is changed then. A later `add_item` makes a new queue.
        """
        deleted = await self.executor.run(commands.delete(self.keys))
        await self.executor.unregister()
        return deleted
