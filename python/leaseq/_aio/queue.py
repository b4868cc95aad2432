"""A queue as producers and workers use it: adding, leasing, keeping and ending leases, outcomes."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Self, TypeVar, Unpack, overload

from leaseq import commands, flows
from leaseq._aio import concurrency
from leaseq._aio.heartbeater import Heartbeater
from leaseq._aio.queue_admin import QueueAdmin
from leaseq._scripts import MAX_ENTRIES
from leaseq.commands import Command, LeaseReply, Taken, pack
from leaseq.commands.additions import Options
from leaseq.commands.completions import AddOptions, Completion, FollowUp, batches, check_targets
from leaseq.commands.releases import ReleaseRequest
from leaseq.durability import Confirmed, Durability
from leaseq.durations import Duration, Time, deadline_after, seconds
from leaseq.errors import BadArgumentError, LeaseqError, NotDurableError, TooLargeError
from leaseq.exception_text import text_of
from leaseq.heartbeat_schedule import extending, extensions_failed
from leaseq.item import Bytes, Item, LeasedItemBase
from leaseq.results import Completed, Outcome, Released

T = TypeVar("T")

INTERRUPTIONS = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)
"""Exceptions that end a block that has not failed. Others that are no Exception (a panic of Rust) are failures."""


class LeasedItem(LeasedItemBase):
    """An item that this process has leased.

    In the block of `async with item:` its lease is extended in the background, and the item is completed with `result` at
    the end of the block. If the block raises an exception of any type, the item is released with exponential backoff (0.5 to 300 s),
    the text of the exception is kept as its last error, and the exception is raised again. An interruption
    (KeyboardInterrupt, SystemExit, GeneratorExit, cancellation) releases the item at once, and the attempt does not
    count. If the block completed or released the item itself, nothing more is done.

    The lease is lost if another worker leased the item after the deadline or completed it, or if it was removed; then
    `lost` is true. In asyncio, the task is cancelled where it waits inside the block, and the block ends without an
    exception. A thread cannot be cancelled: check `lost` in work that takes long.

    Attributes:
        queue: the queue that it was leased from.
    """

    __slots__ = ("_heartbeater", "_stopper", "queue")

    def __init__(
        self,
        queue: "WorkQueue",
        heartbeater: Heartbeater,
        record: Taken,
        deadline: float,
        lease_secs: float,
        since: float,
    ) -> None:
        item_id, data, token, attempt = record
        super().__init__(item_id, data, token, attempt, deadline, lease_secs, since)
        self.queue = queue
        self._heartbeater = heartbeater
        self._stopper: concurrency.Stopper | None = None

    async def __aenter__(self) -> Self:
        self._stopper = concurrency.Stopper()
        self._heartbeater.add(self)
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, *_: object) -> concurrency.Swallows:
        self._heartbeater.drop([self])
        stopper, self._stopper = self._stopper, None
        if stopper is not None and stopper.end(error):
            return True
        if self.hold.ended:
            return False
        if error is None:
            await self._complete()
        elif not self.lost:
            await self._release(error)
        return False

    async def _complete(self) -> None:
        try:
            await self.queue.complete(self)
        except TooLargeError as error:
            # nothing was done, and it would be the same again: the next attempt comes as after any other failure
            await self._release(error)
            raise

    async def _release(self, error: BaseException) -> None:
        try:
            if isinstance(error, INTERRUPTIONS):
                await self.queue.release(self, uncounted=True)
            else:
                await self.queue.release(self, delay=flows.backoff(self.attempt), error=text_of(error))
        except LeaseqError as failure:
            # what the block raised passes on, above all an interruption
            error.add_note(
                f"leaseq did not release item {self.id!r}, which waits for its deadline: {failure}"
            )

    def stop(self) -> None:
        """The lease is lost: cancel the task inside the block, if there is one."""
        if self._stopper is not None and not self.hold.ending and not self.hold.ended:
            self._stopper.stop()


class WorkQueue(QueueAdmin):
    """A queue on a Redis or Valkey server. Tasks may share one object; close it, or use it as a context manager.

    `name` and `group` are 1 to 100 letters, digits or `_ . -`. `group` decides the hash slot and defaults to the name;
    queues that hand items to each other share a group. `server` is a URL (redis://, rediss://, unix://,
    redis+sentinel://HOSTS/SERVICE, redis+cluster://HOSTS, or embedded:DIR for a server in a folder) or a
    redis.asyncio client (single, Sentinel, Cluster); None: $REDIS_URL. A client is not closed, and its retries are not used.

    Raises BadNameError, BadTypeError, BadArgumentError, NoServerError at once; EmbeddedServerError, UnavailableError or
    AccessDeniedError too if it starts or asks a server (embedded, cluster). Every call raises the errors of
    `leaseq.errors`, whose `definite` is false if the call may have taken effect.

    `durable` (Replicas or Disk) applies to every call of this object that adds or completes and is not given another: the
    call waits until replicas or disks have it. Too few: NotDurableError, which has the answer.
    """

    async def add_item(
        self,
        item: Item,
        *,
        delay: Duration = 0,
        not_before: Time | None = None,
        priority: int = 0,
        max_attempts: int | None = None,
        expires_in: Duration | None = None,
        dead_on_expiry: bool = False,
        keep: Duration | None = None,
        durable: Durability | None = None,
        pipe: Any = None,
    ) -> bool:
        """Add an item. Return true if it was added, or false if its id exists: then nothing changes (LQ-ADD-1).

        It can be leased at once, or after `delay` seconds, or from `not_before` on (seconds since 1970 or a datetime with
        a time zone, compared with the server's clock; not together with `delay`). `priority` is -7..7, higher first.
        After `max_attempts` leases it becomes a dead letter instead of being requeued; 0: never; None: as the queue is
        configured. If no worker leases it within `expires_in` seconds, it is deleted, or with `dead_on_expiry` becomes a
        dead letter. With `keep` its outcome (a result, or the error that it died of) is kept for `keep` seconds from its
        end: see `outcome`. An outcome of an earlier item with this id is deleted.

        Raises QueueFullError if the queue holds as many items as `configure` allows (`add_item_when_room` waits),
        TooLargeError for too much data or too long headers, BadIdError, BadArgumentError, BadTypeError,
        OutOfMemoryError. Not safe to repeat after ReplyLostError: the item may have been completed in between, and then
        runs again.

        With `durable` (Replicas or Disk; None: that of the queue) it returns once that many replicas or disks have the item,
        added by this call or before. Raises NotDurableError if they do not in time: the item is added, and the error has the
        answer. Raises NoDurabilityError, before it adds, if the server cannot wait so.

        With `pipe`, a pipeline of a redis.asyncio client, the call is only queued there (also inside MULTI) and returns
        false. The pipeline returns the time of creation in microseconds since 1970, or 0 if the id existed, or -1 if the
        queue was full. Its retries (redis-py's default) may send the add twice, and an item that was completed in between
        runs again: use a client with Retry(NoBackoff(), 0), or make items safe to run twice.
        """
        options = commands.add_options(
            delay=delay,
            not_before=not_before,
            priority=priority,
            max_attempts=max_attempts,
            expires_in=expires_in,
            dead_on_expiry=dead_on_expiry,
            keep=keep,
        )
        command = commands.add_one(self.keys, item, options)
        if pipe is not None:
            concurrency.check_pipe(pipe, durable).execute_command(*command.eval())
            return False
        if durable is None:
            durable = self.durable
        if durable is not None:
            return await self._add_durably(command, durable)
        created = await self.adds.run(command)
        if created < 0:
            raise commands.queue_full(self.name, [None])
        return created > 0

    async def _add_durably(self, command: Command[int], durable: Durability) -> bool:
        added = await self.executor.run(commands.durably(command, durable))
        if added.answer < 0:
            raise commands.queue_full(self.name, [None])
        return added.delivered_one(added.answer > 0)

    async def add_items(
        self,
        items: Iterable[Item],
        *,
        durable: Durability | None = None,
        pipe: Any = None,
        **options: Unpack[AddOptions],
    ) -> list[bool]:
        """Add many items. Return for each, in order, true if it was added or false if its id exists.

        The options are those of `add_item` and apply to every item. Up to 256 items go in one call. If a call fails,
        `answers` of the error has the answers of the calls before it. If there is no room for some items of a call,
        QueueFullError is raised after it; its `answers` include that call, with None for each item without room. With
        `durable` (see `add_item`) each call waits; after NotDurableError later items were not sent. With `pipe` (see
        `add_item`, also about retries) the calls are only queued, and the list is empty.
        """
        chosen = commands.add_options(**options)
        chunks = flows.chunks(flows.require_iterable(items, "items"), flows.data_size)
        if pipe is not None:
            # all are checked before the first is queued
            for command in [commands.add(self.keys, chunk, chosen) for chunk in chunks]:
                concurrency.check_pipe(pipe, durable).execute_command(*command.eval())
            return []
        return await self._add_all(chunks, chosen, durable)

    async def add_item_when_room(
        self,
        item: Item,
        *,
        timeout: Duration | None = None,
        durable: Durability | None = None,
        **options: Unpack[AddOptions],
    ) -> bool:
        """Add an item. If the queue is full, wait for room, without polling.

        Waits up to `timeout` seconds (0: not at all; None: without limit). Returns true if the item was added, or
        false if its id exists, which needs no room. Raises QueueFullError if there is still no room after that time.
        Options and other errors are those of `add_item`.
        """
        chosen = commands.add_options(**options)
        wait_until = deadline_after(timeout, concurrency.now)
        try:
            return (await self._add_when_room([item], chosen, durable, wait_until))[0]
        except NotDurableError as error:
            error.answer = error.answers[0]
            raise

    async def add_items_when_room(
        self,
        items: Iterable[Item],
        *,
        timeout: Duration | None = None,
        durable: Durability | None = None,
        **options: Unpack[AddOptions],
    ) -> list[bool]:
        """Add many items, as `add_items`, and wait for room as `add_item_when_room`.

        `timeout` is for all items together. Each is added once, as soon as there is room for it (LQ-ROOM-2). When the
        time is over, it raises QueueFullError. Its `answers` have the items tried so far: true, false (the id exists),
        or None (no room).
        """
        chosen = commands.add_options(**options)
        wait_until = deadline_after(timeout, concurrency.now)
        chunks = flows.chunks(flows.require_iterable(items, "items"), flows.data_size)
        return await self._add_all(chunks, chosen, durable, wait_until)

    async def _add_all(
        self,
        chunks: Iterable[list[Item]],
        options: Options,
        durable: Durability | None,
        wait_until: float | None = None,
    ) -> list[bool]:
        """One call after the other; without `wait_until`, none waits for room."""
        answers: list[bool] = []
        chunk: list[Item] = []
        try:
            for chunk in chunks:
                if wait_until is not None:
                    answers += await self._add_when_room(chunk, options, durable, wait_until)
                else:
                    added = await add_durably(self, commands.add(self.keys, chunk, options), durable)
                    answers += commands.all_in(self.name, added)
        except LeaseqError as error:
            error.answers = [*answers, *error.answers]
            if wait_until is None:
                error.in_doubt = len(chunk)
            raise
        return answers

    async def _add_when_room(
        self, items: list[Item], options: Options, durable: Durability | None, wait_until: float
    ) -> list[bool]:
        answers: list[bool | None] = []
        clock = concurrency.now
        flow = flows.add_when_room(
            self.keys,
            items,
            options,
            answers,
            wait_until=wait_until,
            clock=clock,
            durable=self.durable if durable is None else durable,
        )
        try:
            shortfall = await self.executor.drive(flow)
        except LeaseqError as error:
            flows.interrupted(error, answers, len(items))
            raise
        Confirmed(answers, shortfall).delivered(answers)
        return commands.all_in(self.name, answers)

    _last_take: tuple[object, Command[LeaseReply] | None] = (None, None)
    """The last lease: how many for how long, and its command."""

    async def lease(
        self, lease_secs: Duration, *, block: bool = True, timeout: Duration | None = 0
    ) -> LeasedItem | None:
        """Lease the next item for `lease_secs` seconds (0.001 s to 30 days). Return it, or None if there was none.

        Waits for an item up to `timeout` seconds, without polling. With None and with 0 it waits without limit. (In
        other calls 0 means not to wait; here it is as in redis-work-queue.) With `block=False` it does not wait.

        Raises BadArgumentError, BadTypeError. After ReplyLostError an item may stay leased until its deadline: that
        costs an attempt, but the item is not lost.
        """
        items = await self.lease_items(1, lease_secs, block=block, timeout=timeout)
        return items[0] if items else None

    async def lease_items(
        self, count: int, lease_secs: Duration, *, block: bool = True, timeout: Duration | None = 0
    ) -> list[LeasedItem]:
        """Lease up to `count` items (1..256) in one call. Return them; [] if there was none.

        Their data are at most 1 MiB together, unless the first item alone has more. Waits as `lease`, but only for the
        first item.
        """
        asked = (type(count), count, type(lease_secs), lease_secs)
        before, take = self._last_take
        if asked != before or take is None:  # most workers lease again and again in the same way
            take = commands.lease(self.keys, count, lease_secs)
            take = take._replace(packed=pack(take.evalsha()))
            self._last_take = asked, take
        wait_until = (
            flows.lease_deadline(timeout, concurrency.now, block=block)
            if timeout != 0 or not block
            else math.inf
        )
        # most calls end here, and need none of what a wait needs
        reply = await self.executor.run(take)
        if not reply.items:
            flow = flows.lease_until(take, [self.keys], wait_until, concurrency.now, reply)
            reply = await self.executor.drive(flow)
        return leased_items(self, reply, lease_secs)

    async def items(
        self, lease_secs: Duration = 30, *, timeout: Duration | None = 0
    ) -> AsyncIterator[LeasedItem]:
        """Lease one item after the other, each for `lease_secs` seconds. Work on each in `async with item:`.

        Ends if there is none for `timeout` seconds (0 or None: never).
        """
        while item := await self.lease(lease_secs, timeout=timeout):
            yield item

    async def complete_and_lease(
        self,
        item: LeasedItemBase,
        lease_secs: Duration,
        *,
        only_current: bool = False,
        durable: Durability | None = None,
    ) -> tuple[bool, LeasedItem | None]:
        """Complete an item and lease the next in one round trip, without waiting. Return both answers.

        The first is true if this call completed the item, as for `complete`; the second is the next item, leased for
        `lease_secs` seconds, or None.

        An item that keeps its outcome takes two round trips, and so does `durable` (see `complete`), which is for the
        completion. If the second fails, `answers` of the error has the first answer. After NotDurableError nothing is leased.
        """
        if durable is None:
            durable = self.durable
        if durable is not None or getattr(item, "keep", None):  # what is no item is refused below
            return await self._complete_then_lease(item, lease_secs, durable, only_current=only_current)
        command = commands.complete_and_lease(self.keys, [item], 1, lease_secs, only_current=only_current)
        reply = await end_leases(self, [item], command)
        if not reply.items and reply.wait == 0 and not self.executor.life.closed:
            return await self._then_lease(reply.completed[0], lease_secs)  # more was due than one call takes
        items = leased_items(self, reply, lease_secs)
        return reply.completed[0], items[0] if items else None

    async def _complete_then_lease(
        self, item: LeasedItemBase, lease_secs: Duration, durable: Durability | None, *, only_current: bool
    ) -> tuple[bool, LeasedItem | None]:
        commands.check_lease_secs(lease_secs)
        done = await self.complete(item, only_current=only_current, durable=durable)
        return await self._then_lease(done, lease_secs)

    async def _then_lease(self, done: bool, lease_secs: Duration) -> tuple[bool, LeasedItem | None]:
        """Lease behind a completion: an error has the answer of that."""
        try:
            return done, await self.lease(lease_secs, block=False)
        except LeaseqError as error:
            error.answers = [done]
            raise

    async def extend(self, item: LeasedItemBase, lease_secs: Duration) -> bool:
        """Move the deadline to `lease_secs` seconds from now. Return false, and set `item.lost`, if the lease is lost.

        `lease_secs` is 0.001 s to 30 days. Also works after the deadline, until a call of any client makes the item ready
        again. Safe to repeat.
        """
        return (await self.extend_items([item], lease_secs))[0]

    async def extend_items(self, items: Iterable[LeasedItemBase], lease_secs: Duration) -> list[bool]:
        """Move the deadlines of many items. Return an answer for each, in order; see `extend`."""
        secs = seconds(lease_secs, "lease_secs")
        leases = [(item, secs) for item in flows.require_iterable(items, "items")]
        return await self._in_chunks(flows.chunks(leases), self._extend_each)

    async def _extend_each(self, leases: list[tuple[LeasedItemBase, float]]) -> list[bool]:
        command = commands.extend(self.keys, leases)
        extensions = extending(leases, concurrency.now(), asked=True)
        try:
            deadlines = await self.executor.run(command)
        except BaseException:
            extensions_failed(leases, extensions)
            self.heartbeater.reschedule()
            raise
        for (item, _), extension, deadline in zip(leases, extensions, deadlines, strict=True):
            item.hold.extended(extension, deadline)
        self.heartbeater.reschedule()
        return [deadline is not None for deadline in deadlines]

    @overload
    async def complete(
        self,
        item: LeasedItemBase,
        *,
        result: Bytes | None = None,
        keep: Duration | None = None,
        then: None = None,
        only_current: bool = False,
        durable: Durability | None = None,
    ) -> bool: ...

    @overload
    async def complete(
        self,
        item: LeasedItemBase,
        *,
        result: Bytes | None = None,
        keep: Duration | None = None,
        then: Iterable[FollowUp],
        only_current: bool = False,
        durable: Durability | None = None,
    ) -> Completed: ...

    async def complete(
        self,
        item: LeasedItemBase,
        *,
        result: Bytes | None = None,
        keep: Duration | None = None,
        then: Iterable[FollowUp] | None = None,
        only_current: bool = False,
        durable: Durability | None = None,
    ) -> bool | Completed:
        """Complete an item. Exactly one call for each item returns true (LQ-COMPLETE-2).

        The first call wins, also if its lease has expired and another worker has leased the item since. With
        `only_current` the lease must still be the current one. Returns false if the item was completed or removed
        before. Safe to repeat, but after ReplyLostError false can mean that the lost call won; if an outcome is kept, the
        lease that won gets true again.

        `result` (bytes, or str as UTF-8; None: `item.result`) is kept for `keep` seconds (None: as the item was added;
        0: not at all). `then` are follow-ups, each `(queue, item)` or `(queue, item, options)` with
        options of `add_item` as a mapping. They are added in the same step, only if this call completes the item, and past
        any limit of items; their queues are in the same group, on the same server. With `then` it returns a `Completed`:
        true if this call completed the item, with an answer for each follow-up.

        With `durable` (Replicas or Disk; None: that of the queue) it returns once that many replicas or disks have the call, the
        follow-ups included. Raises NotDurableError if they do not in time: the item is completed, and the error has the answer.
        Raises NoDurabilityError, before it completes, if the server cannot wait so.

        Raises CrossGroupError, TooLargeError, BadArgumentError, BadTypeError.
        """
        follow_ups = () if then is None else then
        completion = Completion(item, result=result, keep=keep, then=follow_ups, only_current=only_current)
        if then is not None:
            check_targets(self.keys, self.place, [completion])
        command = commands.complete(self.keys, [completion])
        if durable is None:
            durable = self.durable
        if durable is not None:
            confirmed = await end_leases(self, [item], commands.durably(command, durable))
            won = confirmed.answer[0]
            return confirmed.delivered_one(bool(won) if then is None else _completed(won))
        answers = await end_leases(self, [item], command)
        return bool(answers[0]) if then is None else _completed(answers[0])

    @overload
    async def complete_items(
        self,
        items: Iterable[LeasedItemBase],
        *,
        only_current: bool = False,
        durable: Durability | None = None,
    ) -> list[bool]: ...

    @overload
    async def complete_items(
        self, items: Iterable[Completion], *, durable: Durability | None = None
    ) -> list[Completed]: ...

    async def complete_items(
        self,
        items: Iterable[LeasedItemBase] | Iterable[Completion],
        *,
        only_current: bool = False,
        durable: Durability | None = None,
    ) -> list[bool] | list[Completed]:
        """Complete many items. Return an answer for each, in order; see `complete`, and `add_items` about errors.

        Pass items, or a `Completion` for each, with its own result, `keep`, follow-ups and `only_current`: then each answer
        is a `Completed`. Up to 256 items and 256 follow-ups go in one call. With `durable` (see `complete`) each call waits;
        after NotDurableError later items were not sent. Raises BadTypeError for items among Completions, and BadArgumentError
        for `only_current` beside them.
        """
        given: list[Any] = list(flows.require_iterable(items, "items"))
        if not any(isinstance(one, Completion) for one in given):
            completions = (Completion(item, only_current=only_current) for item in given)
            return await self._complete_each(completions, durable, bool)
        if only_current:
            raise BadArgumentError(
                "only_current does not apply to a Completion: use Completion(item, only_current=True)"
            )
        check_targets(self.keys, self.place, given)
        return await self._complete_each(given, durable, _completed)

    async def _complete_each(
        self,
        completions: Iterable[Completion],
        durable: Durability | None,
        shape: Callable[[bool | Completed], T],
    ) -> list[T]:
        """Complete in calls of 256, and return a shaped answer for each; an error has such answers too."""
        wait = self.durable if durable is None else durable

        async def complete(batch: list[Completion]) -> list[T]:
            command, items = commands.complete(self.keys, batch), [one.item for one in batch]
            if wait is None:
                return [shape(answer) for answer in await end_leases(self, items, command)]
            confirmed = await end_leases(self, items, commands.durably(command, wait))
            return confirmed.delivered([shape(answer) for answer in confirmed.answer])

        return await self._in_chunks(batches(completions, flows.CHUNK_BYTES), complete)

    async def release(
        self, item: LeasedItemBase, *, delay: Duration = 0, uncounted: bool = False, error: str | None = None
    ) -> Released:
        """Give an item back: it can be leased at once, or after `delay` seconds. Return its new state.

        That is "ready" or "delayed"; "dead" if its `max_attempts` are used up; "lost" if the lease was no longer
        current: then nothing changes. With `uncounted` the attempt does not count, and without a delay the item gets its
        original place back. `error` is kept as the item's last error, up to 8192 bytes of UTF-8.
        """
        command = commands.release_each(self.keys, [ReleaseRequest(item, delay, uncounted, error)])
        answer = (await end_leases(self, [item], command))[0]
        if answer == "lost":
            item.hold.lost = True
        return answer

    async def release_items(
        self,
        items: Iterable[LeasedItemBase],
        *,
        delay: Duration = 0,
        uncounted: bool = False,
        error: str | None = None,
    ) -> list[Released]:
        """Give many items back. Return the new state of each, in order; see `release`."""
        requests = [
            ReleaseRequest(item, delay, uncounted, error) for item in flows.require_iterable(items, "items")
        ]
        return await self._in_chunks(flows.chunks(requests), partial(release_each, self))

    async def dead_letter(self, item: LeasedItemBase, *, error: str | None = None) -> bool:
        """Make an item a dead letter, however many attempts it has left. Return false if the lease was no longer current.

        In that case nothing changes. A dead letter stays in the queue until you put it back (`revive`) or delete it
        (`purge`); `dead_letters` lists them. `error` is kept as the item's last error, up to 8192 bytes of UTF-8. A worker
        that still works on the item can complete it even when it is dead.
        """
        return (await self.dead_letter_items([item], error=error))[0]

    async def dead_letter_items(
        self, items: Iterable[LeasedItemBase], *, error: str | None = None
    ) -> list[bool]:
        """Make many items dead letters. Return an answer for each, in order; see `dead_letter`."""
        requests = [
            ReleaseRequest(item, error=error, dead=True) for item in flows.require_iterable(items, "items")
        ]
        return await self._in_chunks(flows.chunks(requests), self._dead_letter_each)

    async def _dead_letter_each(self, requests: list[ReleaseRequest]) -> list[bool]:
        return [answer == "dead" for answer in await release_each(self, requests)]

    async def outcome(self, item_id: str, *, timeout: Duration | None = None) -> Outcome:
        """Return the result of an item that was added with `keep`, or the failure that it died of.

        Waits up to `timeout` seconds (0: not at all; None: without limit) without polling; any number of callers can wait
        for one item. If the time is over, or the item is gone, `finished` is false and `state` is the item's state. An item
        without `keep` has no outcome: the call waits until it is gone. Never returns the outcome of another item with
        the same id.
        """
        flow = flows.outcome(self.keys, item_id, timeout=timeout, clock=concurrency.now)
        return (await self.executor.drive(flow))[0]

    async def outcomes(self, ids: Iterable[str]) -> list[Outcome]:
        """Return the outcomes of many items, in order, without waiting.

        See `outcome` for an item without one. `list_items("kept")` lists the ids that have one.
        """
        wanted = list(flows.require_iterable(ids, "ids"))
        outcomes: list[Outcome] = []
        while len(outcomes) < len(wanted):
            # a call tells of fewer where results are large
            chunk = wanted[len(outcomes) :][:MAX_ENTRIES]
            try:
                found = await self.executor.run(commands.outcome(self.keys, chunk))
            except LeaseqError as error:
                error.answers = outcomes
                error.in_doubt = len(chunk)
                raise
            outcomes += found
        return outcomes


def _completed(answer: bool | Completed) -> Completed:
    return answer if isinstance(answer, Completed) else Completed(answer, [])


def leased_items(queue: WorkQueue, reply: LeaseReply, lease_secs: Duration) -> list[LeasedItem]:
    """The items of a reply, which this queue and its heartbeater look after."""
    # the call has checked it
    secs = lease_secs.total_seconds() if isinstance(lease_secs, timedelta) else lease_secs
    heartbeater, deadline, since = queue.heartbeater, reply.deadline, reply.sent_at or concurrency.now()
    items = [LeasedItem(queue, heartbeater, record, deadline, secs, since) for record in reply.items]
    for number, extra in reply.extras.items():
        item = items[number]
        item.keep, item.content_type, item.headers = extra.keep, extra.content_type, extra.headers
    return items


async def add_durably(
    queue: WorkQueue, command: Command[list[bool | None]], durable: Durability | None
) -> list[bool | None]:
    """Run a call that adds many, and wait as it or the queue says. Raises NotDurableError if it added something."""
    if durable is None:
        durable = queue.durable
    if durable is None:
        return await queue.executor.run(command)
    confirmed = await queue.executor.run(commands.durably(command, durable))
    added = confirmed.answer
    return confirmed.delivered(added) if any(each is not None for each in added) else added


async def end_leases(
    queue: WorkQueue, items: Sequence[LeasedItemBase], command: Command[T], timeout: float | None = None
) -> T:
    """Run a call that ends the leases of these items: a `with` block has nothing to add then.

    Meanwhile an extension may be answered that the lease is lost: because of this very call, which goes on.
    """
    for item in items:
        item.hold.ending = True
    try:
        answer = await queue.executor.run(command, timeout)
    except LeaseqError as error:
        if not error.definite:
            # to complete or release once more would undo this call, if it took effect; else the deadline brings it back
            for item in items:
                item.hold.ended = True
        raise
    finally:
        for item in items:
            item.hold.ending = False
    for item in items:
        item.hold.ended = True
    return answer


async def release_each(queue: WorkQueue, requests: Sequence[ReleaseRequest]) -> list[Released]:
    """Give up to 256 items back in one call, each in its own way; returns for each where it went."""
    command = commands.release_each(queue.keys, requests)
    answers = await end_leases(queue, [one.item for one in requests], command)
    for one, answer in zip(requests, answers, strict=True):
        if answer == "lost":
            one.item.hold.lost = True
    return answers
