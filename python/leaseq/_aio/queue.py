"""The queue."""

import os
from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from leaseq import commands, flows
from leaseq._aio import io
from leaseq._aio.heart import Heart
from leaseq._aio.leased import LeasedItem
from leaseq._aio.transport import Transport
from leaseq.commands import LeaseReply
from leaseq.embedded import EmbeddedServer, embedded
from leaseq.errors import BadArgumentError, LeaseqError, NoServerError
from leaseq.item import Item
from leaseq.keys import QueueKeys
from leaseq.results import DeepClean, ItemInfo, LightClean, Page, QueueStats, Released, State

T = TypeVar("T")
Member = TypeVar("Member")


class WorkQueue:
    """A queue on a Redis or Valkey server. Tasks may share one object; close it, or use it as a context manager.

    `server` is a URL (redis://, rediss://, unix://, or embedded:DIR for a server of its own in a folder) or a
    redis.asyncio client (single, Sentinel, Cluster); without one, $REDIS_URL. A client stays the caller's: it is not
    closed, and none of its retries are used. `group` decides the hash slot and defaults to the name; queues that hand
    items to each other share a group.

    Raises BadNameError, BadTypeError, NoServerError at once; every call raises the errors of `leaseq.errors`, whose
    `definite` says whether it can have taken effect.
    """

    def __init__(self, name: str, server: str | io.Client | None = None, *, group: str | None = None) -> None:
        self._keys = QueueKeys(name, group)
        self._embedded: EmbeddedServer | None = None
        url = os.environ.get("REDIS_URL") if server is None else server
        if url is None or url == "":
            message = (
                f"no server for queue {name!r}: pass a URL (WorkQueue(name, 'redis://localhost')), pass a redis client,"
                " or set $REDIS_URL; 'embedded:DIR' starts a server of its own"
            )
            raise NoServerError(message)
        owned = isinstance(url, str)
        if isinstance(url, str):
            client: io.Client = self._open(url)
        else:
            client = io.check_client(url)
        self._transport = Transport(client, self._keys, owned=owned)
        self._heart = Heart(self._transport, self._keys)

    def _open(self, url: str) -> io.Client:
        if url.startswith("embedded:"):
            folder = url.removeprefix("embedded:")
            if not folder:
                raise BadArgumentError("embedded: needs a folder, as in 'embedded:my-queue-data'")
            self._embedded = embedded(folder)
            url = self._embedded.url
        try:
            return io.connect(url)
        except (ValueError, TypeError):
            # neither the URL nor the cause, which quotes it: there may be a password in it
            message = (
                "this is not a server URL, which looks like redis://user:password@host:6379/0, rediss://...,"
                " unix://path or embedded:DIR"
            )
            raise BadArgumentError(message) from None

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._keys.name

    @property
    def group(self) -> str:
        """The queue's group."""
        return self._keys.group

    # adding

    async def add_item(
        self,
        item: Item,
        *,
        delay: float = 0,
        not_before: float | None = None,
        priority: int = 0,
        max_attempts: int = 0,
        pipe: Any = None,
    ) -> bool:
        """Add an item: true if it was added, false if its id exists, which changes nothing (LQ-ADD-1).

        It becomes leasable at once, or after `delay` seconds, or at `not_before` (seconds since 1970, compared with
        the server's clock). `priority` is -7..7, higher first. After `max_attempts` leases it dies instead of being
        requeued; 0 is never. Not safe to repeat after ReplyLostError: the item may have been completed in between.

        With `pipe`, a pipeline of the caller's, the call is only queued there (also inside MULTI) and the answer is
        false; the pipeline's own answer is the time of creation, or 0 if the id existed. The pipeline's own retries
        (redis-py's default) may send the add twice, and an item that was completed in between runs again: use a client
        with Retry(NoBackoff(), 0), or make sure that an item may run twice.
        """
        options = commands.add_options(
            delay=delay, not_before=not_before, priority=priority, max_attempts=max_attempts
        )
        command = commands.add(self._keys, [item], options)
        if pipe is not None:
            io.check_pipe(pipe).execute_command(*command.eval())
            return False
        return (await self._transport.run(command))[0]

    async def add_items(
        self,
        items: Iterable[Item],
        *,
        delay: float = 0,
        not_before: float | None = None,
        priority: int = 0,
        max_attempts: int = 0,
        pipe: Any = None,
    ) -> list[bool]:
        """Add many items; answers for each, in order. Up to 256 go in one call; see `add_item`.

        When a call fails, what the calls before it answered is in the error's `answers`. What `add_item` says about the
        retries of `pipe` holds here too.
        """
        options = commands.add_options(
            delay=delay, not_before=not_before, priority=priority, max_attempts=max_attempts
        )
        chunks = flows.chunks(flows.many(items, "items"), flows.data_size)
        if pipe is not None:
            # all are checked before the first is queued
            for command in [commands.add(self._keys, chunk, options) for chunk in chunks]:
                io.check_pipe(pipe).execute_command(*command.eval())
            return []
        return await self._in_chunks(chunks, lambda chunk: commands.add(self._keys, chunk, options))

    # working

    async def lease(self, lease_secs: float, *, block: bool = True, timeout: float = 0) -> LeasedItem | None:
        """Lease the next item for `lease_secs` seconds (0.001 to 30 days).

        Waits for one up to `timeout` seconds (0: for ever) without polling; None when there was none, or at once with
        `block=False`. After ReplyLostError an item may stay leased until its deadline: a lost attempt, no lost item.
        """
        items = await self.lease_items(1, lease_secs, block=block, timeout=timeout)
        return items[0] if items else None

    async def lease_items(
        self, count: int, lease_secs: float, *, block: bool = True, timeout: float = 0
    ) -> list[LeasedItem]:
        """Lease up to `count` items (1..256) in one call, at most about 1 MiB of data; waits for the first one only."""
        flow = flows.lease(self._keys, count, lease_secs, block=block, timeout=timeout, clock=io.now)
        return self._leased(await self._drive(flow), lease_secs)

    async def items(self, lease_secs: float = 30, *, timeout: float = 0) -> AsyncIterator[LeasedItem]:
        """Lease one item after the other; ends when there is none for `timeout` seconds (0: never)."""
        while item := await self.lease(lease_secs, timeout=timeout):
            yield item

    async def complete(self, item: LeasedItem, *, only_current: bool = False) -> bool:
        """Finish an item for ever: true for exactly one call in all its life (LQ-COMPLETE-1).

        The first call wins, also when its lease has expired or was superseded: the work is done. With `only_current`
        it must still hold the item. Safe to repeat, but after ReplyLostError false may mean that the lost call won.
        """
        return (await self.complete_items([item], only_current=only_current))[0]

    async def complete_items(self, items: Iterable[LeasedItem], *, only_current: bool = False) -> list[bool]:
        """Finish many items; answers for each, in order. See `complete`, and `add_items` about errors."""
        return await self._ending(
            items, lambda c: commands.complete(self._keys, c, only_current=only_current)
        )

    async def complete_and_lease(
        self, item: LeasedItem, lease_secs: float, *, only_current: bool = False
    ) -> tuple[bool, LeasedItem | None]:
        """Finish an item and lease the next in one round trip; does not wait. Answers both."""
        command = commands.complete_and_lease(self._keys, [item], 1, lease_secs, only_current=only_current)
        try:
            reply = flows.answered(await self._transport.perform(command))
        except LeaseqError as error:
            self._end([item][: flows.out_of_hand(error)])
            raise
        self._end([item])
        items = self._leased(reply, lease_secs)
        return reply.completed[0], items[0] if items else None

    async def extend(self, item: LeasedItem, lease_secs: float) -> bool:
        """Move the deadline to `lease_secs` seconds from now; false, and `item.lost`, if the lease is lost.

        Works after the deadline too, as long as nobody has reclaimed the item. Safe to repeat.
        """
        return (await self.extend_items([item], lease_secs))[0]

    async def extend_items(self, items: Iterable[LeasedItem], lease_secs: float) -> list[bool]:
        """Move the deadlines of many items; answers for each, in order. See `extend`."""
        leases = [(item, lease_secs) for item in flows.many(items, "items")]
        deadlines = await self._in_chunks(
            flows.chunks(leases), lambda chunk: commands.extend(self._keys, chunk)
        )
        for (item, _), deadline in zip(leases, deadlines, strict=True):
            item._heard(deadline)
        return [deadline is not None for deadline in deadlines]

    async def release(self, item: LeasedItem, *, delay: float = 0, uncounted: bool = False) -> Released:
        """Give an item back, leasable at once or after `delay` seconds; answers where it went.

        "ready" or "delayed"; "dead" when it has used up its max_attempts; "lost" when the lease was no longer current,
        which changes nothing. With `uncounted` the attempt does not count and the item keeps its original place.
        """
        return (await self.release_items([item], delay=delay, uncounted=uncounted))[0]

    async def release_items(
        self, items: Iterable[LeasedItem], *, delay: float = 0, uncounted: bool = False
    ) -> list[Released]:
        """Give many items back; answers for each, in order. See `release`."""
        held = list(flows.many(items, "items"))
        answers = await self._ending(
            held, lambda c: commands.release(self._keys, c, delay=delay, uncounted=uncounted)
        )
        for item, answer in zip(held, answers, strict=True):
            if answer == "lost":
                item._heard(None)
        return answers

    # looking after the queue

    async def remove(self, item_id: str) -> State:
        """Remove an item in any state; answers the state it was in, "absent" if there was none.

        Whoever holds it learns it at its next call: extend says that the lease is lost, complete answers false.
        """
        return (await self.remove_items([item_id]))[0]

    async def remove_items(self, ids: Iterable[str]) -> list[State]:
        """Remove many items; answers for each, in order."""
        return await self._in_chunks(
            flows.chunks(flows.many(ids, "ids")), lambda chunk: commands.remove(self._keys, chunk)
        )

    async def light_clean(self) -> LightClean:
        """Requeue all expired leases and promote all due items, in bounded steps. Safe to repeat, at any time."""
        done = LightClean()
        while True:
            step = await self._transport.run(commands.light_clean(self._keys, 256))
            done = done.plus(step.done)
            if step.wait != 0:
                return done

    async def deep_clean(self, *, dry_run: bool = False) -> DeepClean:
        """Look through the whole queue for damage and repair it, page by page, while traffic runs (LQ-DEEP-1).

        With `dry_run` nothing is written and the answer says what would be repaired.
        """
        repairs: dict[str, int] = {}
        cursor = "0"
        while True:
            command = commands.deep_clean(self._keys, cursor, 256, dry_run=dry_run)
            page = await self._transport.run(command)
            for kind, count in page.done.repairs.items():
                repairs[kind] = repairs.get(kind, 0) + count
            cursor = page.cursor
            if cursor == "0":
                return DeepClean(repairs)

    async def queue_len(self) -> int:
        """How many items wait: ready and delayed. With `processing` these are all that are not finished or dead."""
        stats = await self.stats()
        return stats.ready + stats.delayed

    async def processing(self) -> int:
        """How many items are leased, expired leases that nobody has reclaimed yet included."""
        return (await self.stats()).leased

    async def stats(self) -> QueueStats:
        """Counts by state and cumulative counters."""
        return await self._transport.run(commands.stats(self._keys))

    async def inspect(self, item_id: str) -> ItemInfo:
        """What is known of an item: state, attempt, token, times, size. The state is "absent" if there is none."""
        return (await self.inspect_items([item_id]))[0]

    async def inspect_items(self, ids: Iterable[str]) -> list[ItemInfo]:
        """What is known of many items; answers for each, in order."""
        return await self._in_chunks(
            flows.chunks(flows.many(ids, "ids")), lambda chunk: commands.inspect(self._keys, chunk)
        )

    async def list_items(
        self,
        state: Literal["ready", "delayed", "leased", "dead"],
        *,
        offset: int = 0,
        limit: int = 100,
        backward: bool = False,
    ) -> Page:
        """One page of the items in a state, next first; `limit` is 1..256."""
        return await self._transport.run(
            commands.list_items(self._keys, state, offset, limit, backward=backward)
        )

    async def configure(self, *, max_data: int) -> None:
        """Set the largest data of an item, in bytes (1 to 512 MiB), for all clients of the queue."""
        await self._transport.run(commands.configure(self._keys, max_data=max_data))

    async def close(self) -> None:
        """Close the queue: waiting leases raise QueueClosedError, and so does every later call. Held items stay held."""
        await self._heart.end()
        await self._transport.close()
        if self._embedded is not None:
            self._embedded.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.WorkQueue {self.name!r}>"

    async def _drive(self, flow: flows.LeaseFlow) -> LeaseReply:
        request = next(flow)
        while True:
            answer = await self._transport.perform(request)
            try:
                request = flow.send(answer)
            except StopIteration as end:
                reply: LeaseReply = end.value
                return reply

    def _leased(self, reply: LeaseReply, lease_secs: float) -> list[LeasedItem]:
        items = [LeasedItem(self, self._heart, *taken, reply.deadline, lease_secs) for taken in reply.items]
        for item in items:
            item._since = reply.asked or io.now()
        return items

    async def _ending(self, items: Iterable[LeasedItem], make: "Any") -> list[Any]:
        held = list(flows.many(items, "items"))
        try:
            answers = await self._in_chunks(flows.chunks(held), make)
        except LeaseqError as error:
            self._end(held[: flows.out_of_hand(error)])
            raise
        self._end(held)
        return answers

    def _end(self, items: Sequence[LeasedItem]) -> None:
        """The caller has completed or released them: a `with` block has nothing to add, nor has the heart."""
        for item in items:
            item._ended = True
            self._heart.drop(item)

    async def _in_chunks(self, chunks: Iterable[Sequence[Any]], make: Any) -> list[Any]:
        answers: list[Any] = []
        for chunk in chunks:
            try:
                answers += await self._transport.run(make(chunk))
            except LeaseqError as error:
                error.answers = answers
                raise
        return answers
