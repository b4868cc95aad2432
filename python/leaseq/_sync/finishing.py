# Generated from _aio/finishing.py by python/unasync.py: do not edit.
"""The ends of a lease: completing, releasing, dead lettering."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar, overload

from leaseq import commands, flows
from leaseq._sync.base import QueueBase
from leaseq.commands import Command
from leaseq.commands.handoff import Finished, FollowUp, batches, check_targets
from leaseq.errors import LeaseqError
from leaseq.item import Bytes, LeasedItemBase
from leaseq.results import Completed, Released

T = TypeVar("T")


class Finishing(QueueBase):
    """The part of a queue that ends leases."""

    @overload
    def complete(
        self,
        item: LeasedItemBase,
        *,
        result: Bytes | None = None,
        keep: float | None = None,
        then: None = None,
        only_current: bool = False,
    ) -> bool: ...

    @overload
    def complete(
        self,
        item: LeasedItemBase,
        *,
        result: Bytes | None = None,
        keep: float | None = None,
        then: Iterable[FollowUp],
        only_current: bool = False,
    ) -> Completed: ...

    def complete(
        self,
        item: LeasedItemBase,
        *,
        result: Bytes | None = None,
        keep: float | None = None,
        then: Iterable[FollowUp] | None = None,
        only_current: bool = False,
    ) -> bool | Completed:
        """Finish an item for ever: true for exactly one call in all its life (LQ-COMPLETE-1).

        The first call wins, also when its lease has expired or was superseded: the work is done. With `only_current`
        it must still hold the item. Safe to repeat, but after ReplyLostError false may mean that the lost call won;
        where an outcome is kept, the lease that won answers true again.

        `result` (bytes, or str as UTF-8; None: `item.result`) is kept where the item was added with `keep`, or for
        `keep` seconds where this call says so; `keep=0` keeps nothing. `then` are follow-ups, each `(queue, item)` or
        `(queue, item, options)` with options of `add_item` as a mapping. They are added in the same step, only if this
        call completes the item, and past any limit of items; their queues are of the same group. With `then` the answer
        is a `Completed`, which is true if and only if this call completed the item and has an answer for each follow-up.

        Raises CrossGroupError, TooLargeError.
        """
        if result is None and keep is None and then is None:
            return (self._complete([item], [[item]], only_current=only_current))[0]
        finished = Finished(
            item, result=result, keep=keep, then=() if then is None else then, only_current=only_current
        )
        done = (self.finish_items([finished]))[0]
        return done.completed if then is None else done

    def complete_items(self, items: Iterable[LeasedItemBase], *, only_current: bool = False) -> list[bool]:
        """Finish many items; answers for each, in order. See `complete`, and `add_items` about errors."""
        held = list(flows.many(items, "items"))
        return self._complete(held, flows.chunks(held, _result_size), only_current=only_current)

    def _complete(
        self, held: list[LeasedItemBase], chunks: Iterable[list[LeasedItemBase]], *, only_current: bool
    ) -> list[bool]:
        return self._end_each(
            held, chunks, lambda chunk: commands.complete(self._keys, chunk, only_current=only_current)
        )

    def finish_items(self, finished: Iterable[Finished]) -> list[Completed]:
        """Finish many items, each with a result and follow-ups of its own; answers for each, in order.

        Up to 256 items and 256 follow-ups go in one call. See `complete`, and `add_items` about errors.
        """
        all_of_them = list(flows.many(finished, "Finished"))
        check_targets(self._keys, self._place, all_of_them)
        return self._end_each(
            [getattr(one, "item", None) for one in all_of_them],
            batches(all_of_them, flows.CHUNK_BYTES),
            lambda batch: commands.complete_with(self._keys, batch),
        )

    def release(
        self, item: LeasedItemBase, *, delay: float = 0, uncounted: bool = False, error: str | None = None
    ) -> Released:
        """Give an item back, leasable at once or after `delay` seconds; answers where it went.

        "ready" or "delayed"; "dead" when it has used up its max_attempts; "lost" when the lease was no longer current,
        which changes nothing. With `uncounted` the attempt does not count and the item keeps its original place.
        `error` is kept as the item's last error, up to 8192 bytes of UTF-8.
        """
        return (self.release_items([item], delay=delay, uncounted=uncounted, error=error))[0]

    def release_items(
        self,
        items: Iterable[LeasedItemBase],
        *,
        delay: float = 0,
        uncounted: bool = False,
        error: str | None = None,
    ) -> list[Released]:
        """Give many items back; answers for each, in order. See `release`."""
        return self._released(_hear, items, delay=delay, uncounted=uncounted, error=error)

    def dead_letter(self, item: LeasedItemBase, *, error: str | None = None) -> bool:
        """Let an item die, whatever its attempts: it waits for a person, who looks at it (`dead_letters`), then puts
        it back (`revive`) or drops it (`purge`). False when the lease was no longer current, which changes nothing.

        `error` is kept as its last error, up to 8192 bytes of UTF-8. A lease that it had can still complete it.
        """  # noqa: D205 (one sentence)
        return (self.dead_letter_items([item], error=error))[0]

    def dead_letter_items(self, items: Iterable[LeasedItemBase], *, error: str | None = None) -> list[bool]:
        """Let many items die; answers for each, in order. See `dead_letter`."""
        return self._released(_died, items, error=error, dead=True)

    def _released(
        self,
        hear: Callable[[list[LeasedItemBase], list[Released]], list[T]],
        items: Iterable[LeasedItemBase],
        **options: Any,
    ) -> list[T]:
        held = list(flows.many(items, "items"))
        return self._end_each(
            held,
            flows.chunks(held),
            lambda chunk: commands.release(self._keys, chunk, **options).told(partial(hear, chunk)),
        )

    def _ending(self, items: list[Any], call: Callable[[], T]) -> T:
        """Run a call that ends these items: a `with` block has nothing to add then, nor has the heart.

        Meanwhile an extension may be answered that the lease is lost: because of this very call, which goes on.
        """
        held = [item for item in items if isinstance(item, LeasedItemBase)]
        for item in held:
            item._ending = True
        try:
            answer = call()
        except LeaseqError as error:
            self._end(items[: flows.out_of_hand(error)])
            raise
        finally:
            for item in held:
                item._ending = False
        self._end(items)
        return answer

    def _end_each(
        self, items: list[Any], chunks: Iterable[list[Any]], make: Callable[[list[Any]], Command[list[T]]]
    ) -> list[T]:
        """Run calls that end items; one answer for each."""
        return self._ending(items, partial(self._in_chunks, chunks, make))

    def _end(self, items: list[LeasedItemBase]) -> None:
        for item in items:
            item._ended = True
        self._heart.drop(items)


def _result_size(item: Any) -> int:
    """What an item weighs in `chunks`; what is none is refused later, by name."""
    return len(item.result or b"") if isinstance(item, LeasedItemBase) else 0


def _hear(items: list[LeasedItemBase], answers: list[Released]) -> list[Released]:
    """Tell the items that their leases are lost, where they are."""
    for item, answer in zip(items, answers, strict=True):
        if answer == "lost":
            item._lost = True
    return answers


def _died(items: list[LeasedItemBase], answers: list[Released]) -> list[bool]:
    return [answer == "dead" for answer in _hear(items, answers)]
