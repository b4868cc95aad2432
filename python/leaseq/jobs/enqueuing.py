"""Enqueuing: one call, many, by name, one behind the other."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from leaseq.commands.adding import Options as ItemOptions
from leaseq.errors import BadTypeError
from leaseq.item import Item
from leaseq.jobs.base import AppBase, by_queue
from leaseq.jobs.call import Call, as_it_is
from leaseq.jobs.chain import Chain
from leaseq.jobs.function import Enqueuer, check_module, listed, name_of
from leaseq.jobs.handle import Handle
from leaseq.jobs.options import Options

T = TypeVar("T")


class Enqueuing(AppBase):
    """The part of an App that producers use."""

    def named(self, name: str) -> Enqueuer[..., Any]:
        """What enqueues a function by its name, which need not be known here: `app.named("mail.send").using(...)`."""
        return self.functions.get(name) or Enqueuer(self, name_of(as_it_is, name), self._defaults)

    def enqueue(self, name: str, /, *args: Any, **kwargs: Any) -> Handle[Any]:
        """Enqueue a function by its name, which need not be known here."""
        return self.named(name).enqueue(*args, **kwargs)

    async def aenqueue(self, name: str, /, *args: Any, **kwargs: Any) -> Handle[Any]:
        """`enqueue` for asyncio."""
        return await self.named(name).aenqueue(*args, **kwargs)

    def _enqueue(self, call: Call[T]) -> Handle[T]:
        """Enqueue one call, in one round trip, or in two where the server's time is asked for or an id was chosen."""
        store, queue = self._store, call.options.queue
        now = store.now(queue) if call.options.asks_time else None
        item = call.item(self._format, self._serializer)
        added = store.add_one(queue, item, call.options.of_item(now))
        if call.options.id is not None:
            for place, ids in _reused([call], [added]).items():
                store.forget(place, ids)
        if self._at_once is not None:
            self._at_once.run()
        return Handle(self, item.id, queue, call.convert, added=added)

    async def _aenqueue(self, call: Call[T]) -> Handle[T]:
        """`_enqueue` for asyncio."""
        store, queue = self._astore, call.options.queue
        now = await store.now(queue) if call.options.asks_time else None
        item = call.item(self._format, self._serializer)
        added = await store.add_one(queue, item, call.options.of_item(now))
        if call.options.id is not None:
            for place, ids in _reused([call], [added]).items():
                await store.forget(place, ids)
        if self._at_once is not None:
            await self._at_once.arun()
        return Handle(self, item.id, queue, call.convert, added=added)

    def enqueue_many(self, calls: Iterable[Call[T]]) -> list[Handle[T]]:
        """Enqueue calls, in one round trip for each queue and 256 of them; a handle for each, in order.

        When a call to the server fails, what was answered before is in the error's `answers`, of that queue.
        """
        given = listed(calls)
        handles: dict[int, Handle[T]] = {}
        for queue, numbers in by_queue(call.options.queue for call in given).items():
            chosen = [given[number] for number in numbers]
            now = self._store.now(queue) if _asks_time(chosen) else None
            entries = self._entries(chosen, now)
            answers = self._store.add(queue, entries)
            for place, ids in _reused(chosen, answers).items():
                self._store.forget(place, ids)
            handles.update(zip(numbers, self._handles(chosen, entries, answers), strict=True))
        if self._at_once is not None:
            self._at_once.run()
        return [handles[number] for number in range(len(given))]

    async def aenqueue_many(self, calls: Iterable[Call[T]]) -> list[Handle[T]]:
        """`enqueue_many` for asyncio."""
        given = listed(calls)
        handles: dict[int, Handle[T]] = {}
        for queue, numbers in by_queue(call.options.queue for call in given).items():
            chosen = [given[number] for number in numbers]
            now = await self._astore.now(queue) if _asks_time(chosen) else None
            entries = self._entries(chosen, now)
            answers = await self._astore.add(queue, entries)
            for place, ids in _reused(chosen, answers).items():
                await self._astore.forget(place, ids)
            handles.update(zip(numbers, self._handles(chosen, entries, answers), strict=True))
        if self._at_once is not None:
            await self._at_once.arun()
        return [handles[number] for number in range(len(given))]

    def chain(self, first: Call[T]) -> Chain[T]:
        """Jobs one after the other: `app.chain(f.call(1)).then(g.step()).enqueue()`. Raises BadTypeError."""
        return Chain(self, listed([first])[0])

    def _call(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        options: Options,
        given: frozenset[str],
    ) -> Call[Any]:
        """A call; its arguments are looked at where the function is known here."""
        check_module(name)
        function = self.functions.get(name)
        if function is None:
            return Call(name, args, kwargs, options, given, as_it_is)
        try:
            function.signature.check(args, kwargs)
        except TypeError as error:
            raise BadTypeError(f"{name} is not called like that: {error}") from error
        return Call(name, args, kwargs, options, given, function.signature.result)

    def _entries(self, calls: Sequence[Call[Any]], now: float | None) -> list[tuple[Item, ItemOptions]]:
        return [(call.item(self._format, self._serializer), call.options.of_item(now)) for call in calls]

    def _handles(
        self,
        calls: Sequence[Call[T]],
        entries: Sequence[tuple[Item, ItemOptions]],
        answers: Sequence[bool],
    ) -> list[Handle[T]]:
        return [
            Handle(self, item.id, call.options.queue, call.convert, added=added)
            for call, (item, _), added in zip(calls, entries, answers, strict=True)
        ]


def _asks_time(calls: Sequence[Call[Any]]) -> bool:
    return any(call.options.asks_time for call in calls)


def _reused(calls: Sequence[Call[Any]], answers: Sequence[bool]) -> dict[str, list[str]]:
    """For each queue, ids that were chosen and just added, and those behind them: what was noted of earlier jobs of these ids is over."""
    found: dict[str, list[str]] = {}
    for call, added in zip(calls, answers, strict=True):
        if added and call.options.id is not None:
            found.setdefault(call.options.queue, []).append(call.options.id)
            for stage in call.then:
                found.setdefault(stage.queue, []).append(stage.id)
    return found
