"""The worker: what becomes of items, whatever their handlers do."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
import servers
from shift import PATIENCE, Gate, Shift, shift, start
from watching import EVALS, calls, load

import leaseq
import leaseq.worker
from leaseq import Item
from leaseq.worker import Backoff, DeadLetter, Hooks, Release

if TYPE_CHECKING:
    import redis
    from colours import Colour

pytestmark = [pytest.mark.on("last"), pytest.mark.timeout(300)]
"""Its scripts are those of the client, which is tested on all servers."""

HOUR = 3600.0


def until(check: Any) -> None:
    servers.wait_until(check, PATIENCE)


class Told(Hooks):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def leased(self, items: Any) -> None:
        self.calls.append(("leased", [item.id for item in items]))

    def started(self, item: Any) -> None:
        self.calls.append(("started", item.id))

    def ended(self, item: Any, seconds: float, error: BaseException | None) -> None:
        assert seconds >= 0
        self.calls.append(("ended", (item.id, error and str(error))))

    def completed(self, item: Any) -> None:
        self.calls.append(("completed", item.id))

    def released(self, item: Any, delay: float, error: str | None) -> None:
        self.calls.append(("released", (item.id, delay, error)))

    def dead_lettered(self, item: Any, error: str | None) -> None:
        self.calls.append(("dead_lettered", (item.id, error)))

    def lost(self, item: Any) -> None:
        self.calls.append(("lost", item.id))

    def server_away(self, error: BaseException) -> None:
        self.calls.append(("server_away", type(error).__name__))

    def server_back(self, seconds: float) -> None:
        assert seconds >= 0
        self.calls.append(("server_back", None))

    def of(self, name: str) -> list[Any]:
        return [what for called, what in self.calls if called == name]


def test_every_item_is_handled_once_and_completed_in_groups(
    colour: Colour, redis_client: redis.Redis, url: str
) -> None:
    queue = colour.queue("q", url)
    queue.add_items(Item(b"x", id=f"i{n}") for n in range(2000))
    load(redis_client)
    redis_client.config_resetstat()
    handled: list[str] = []
    assert Shift(colour, queue, lambda item: handled.append(item.id), burst=True).result() == 2000
    assert sorted(handled) == sorted(f"i{n}" for n in range(2000))
    assert queue.stats().completed == 2000
    assert calls(redis_client, *EVALS) < 1000, "one by one, it would be at least 2001"


def test_what_a_handler_raises_decides(colour: Colour, url: str) -> None:
    queue = colour.queue("q", url)
    queue.add_items(Item(name, id=name) for name in ("fail", "retry", "dead", "chosen", "late", "back"))
    reasons: dict[str, BaseException] = {
        "fail": ZeroDivisionError("by nothing"),
        "retry": Release("later", delay=HOUR),
        "dead": DeadLetter("for a person"),
        "chosen": KeyError("no such"),
        "late": SystemExit(3),
        "back": Release(uncounted=True, delay=HOUR),
    }

    def handle(item: Any) -> None:
        raise reasons[item.id]

    told = Told()
    done = Shift(
        colour, queue, handle, burst=True, backoff=Backoff(HOUR, HOUR), dead_letter_on=[KeyError], hooks=told
    ).result()
    assert done == 0
    info = {name: queue.inspect(name) for name in reasons}
    assert {name: each.state for name, each in info.items()} == {
        "fail": "delayed",
        "retry": "delayed",
        "dead": "dead",
        "chosen": "dead",
        "late": "delayed",
        "back": "delayed",
    }
    assert info["fail"].error == "ZeroDivisionError: by nothing"
    assert info["retry"].error == "later"
    assert info["dead"].error == "for a person"
    assert info["chosen"].error == "KeyError: 'no such'"
    now = queue.stats().now
    assert HOUR / 2 - 60 < info["fail"].time - now <= HOUR
    assert HOUR - 60 < info["retry"].time - now <= HOUR
    assert info["back"].attempt == 0
    assert sorted(what[0] for what in told.of("dead_lettered")) == ["chosen", "dead"]
    assert {what[0] for what in told.of("released")} == {"fail", "retry", "late", "back"}


def test_an_item_dies_of_its_attempts(colour: Colour, url: str) -> None:
    queue = colour.queue("q", url)
    queue.add_item(Item(b"", id="a"))

    def handle(_: Any) -> None:
        raise ValueError("again")

    Shift(colour, queue, handle, burst=True, max_attempts=3, backoff=lambda _: 0.0).result()
    assert (queue.inspect("a").state, queue.inspect("a").attempt) == ("dead", 3)
    assert queue.inspect("a").error == "ValueError: again"


def test_an_item_that_killed_its_workers_dies_unseen(colour: Colour, url: str) -> None:
    """Nobody was left to count: more attempts than allowed are behind it when it is leased."""
    queue = colour.queue("q", url)
    queue.add_item(Item(b"", id="a"))
    for _ in range(2):
        item = queue.lease(30)
        assert item is not None
        queue.release(item)
    handled: list[str] = []
    Shift(colour, queue, lambda item: handled.append(item.id), burst=True, max_attempts=2).result()
    assert handled == []
    assert queue.inspect("a").state == "dead"
    assert "leased 3 times" in queue.inspect("a").error


def test_what_a_handler_ended_itself_is_left_alone(colour: Colour, url: str) -> None:
    queue = colour.queue("q", url)
    queue.add_items([Item(b"", id="completed"), Item(b"", id="released"), Item(b"", id="block")])

    def end(item: Any) -> Any:
        if item.id == "completed":
            return item.queue.complete(item)
        if item.id == "released":
            return item.queue.release(item, delay=HOUR)
        return None

    async def end_async(item: Any) -> None:
        if item.id == "block":
            async with item:
                pass
        else:
            await end(item)

    def end_sync(item: Any) -> None:
        if item.id == "block":
            with item:
                pass
        else:
            end(item)

    assert Shift(colour, queue, end_async if colour.name == "asyncio" else end_sync, burst=True).result() == 0
    assert queue.inspect("released").state == "delayed"
    assert (queue.stats().completed, queue.stats().leased) == (2, 0)


def test_burst_ends_when_nothing_is_left_also_of_what_handlers_add(colour: Colour, url: str) -> None:
    queue = colour.queue("q", url)
    queue.add_item(Item(b"", id="0"))

    async def handle_async(item: Any) -> None:
        if int(item.id) < 5:
            await item.queue.add_item(Item(b"", id=str(int(item.id) + 1)))

    def handle(item: Any) -> None:
        if int(item.id) < 5:
            item.queue.add_item(Item(b"", id=str(int(item.id) + 1)))

    assert (
        Shift(colour, queue, handle_async if colour.name == "asyncio" else handle, burst=True).result() == 6
    )


def test_slow_work_is_not_hoarded(colour: Colour, url: str) -> None:
    """Nothing is measured before the first end, so nothing is leased beyond the slots."""
    queue = colour.queue("q", url)
    queue.add_items(Item(b"") for _ in range(50))
    gate = Gate()
    with shift(colour, queue, gate.handler(colour), concurrency=3) as work:
        gate.reached(3)
        assert queue.stats().leased == 3
        gate.open()
        until(lambda: queue.stats().completed == 50)
        work.stop()
        assert work.result() == 50


def test_what_was_leased_ahead_goes_back_when_the_work_becomes_slow(colour: Colour, url: str) -> None:
    queue = colour.queue("q", url)
    queue.add_items(Item(b"", id=f"fast{n}") for n in range(600))
    queue.add_items([Item(b"", id="slow"), *(Item(b"", id=f"next{n}") for n in range(200))])
    gate = Gate()
    slow = gate.handler(colour)

    async def handle_async(item: Any) -> None:
        if item.id == "slow":
            await slow(item)  # type: ignore[misc]

    def handle(item: Any) -> None:
        if item.id == "slow":
            slow(item)

    handler = handle_async if colour.name == "asyncio" else handle
    with shift(colour, queue, handler, concurrency=1, max_attempts=1) as work:
        gate.reached()
        until(lambda: queue.stats().leased == 1)
        gate.open()
        until(lambda: queue.stats().completed == 801)
        work.stop()
    assert queue.stats().dead == 0, "what went back was not counted"


def test_all_that_is_held_is_extended_in_one_call(
    colour: Colour, redis_client: redis.Redis, url: str
) -> None:
    """LQ-CLIENT-3: the deadlines move, however many items there are."""
    queue = colour.queue("q", url)
    queue.add_items(Item(b"", id=f"i{n}") for n in range(20))
    gate = Gate()
    with shift(colour, queue, gate.handler(colour), concurrency=20, lease_secs=HOUR) as work:
        gate.reached(20)
        load(redis_client)
        before = {listed.id: listed.time for listed in queue.list_items("leased").items}
        redis_client.config_resetstat()
        work.beat()
        assert calls(redis_client, *EVALS) == 1
        after = {listed.id: listed.time for listed in queue.list_items("leased").items}
        assert len(before) == 20
        assert all(after[item_id] > before[item_id] for item_id in before)
        gate.open()
        until(lambda: queue.stats().completed == 20)


def test_a_handler_whose_item_was_removed_is_told(colour: Colour, url: str) -> None:
    """LQ-CLIENT-4: in asyncio it is cancelled, in threads `lost` is true. The others go on."""
    queue = colour.queue("q", url)
    queue.add_items([Item(b"", id="gone"), Item(b"", id="stays")])
    gate, told, items, cancelled = Gate(), Told(), {}, threading.Event()
    stand = gate.handler(colour)

    async def handle_async(item: Any) -> None:
        items[item.id] = item
        try:
            await stand(item)  # type: ignore[misc]
        except asyncio.CancelledError:
            assert item.id == "gone"
            cancelled.set()
            raise

    def handle(item: Any) -> None:
        items[item.id] = item
        stand(item)

    in_tasks = colour.name == "asyncio"
    with shift(colour, queue, handle_async if in_tasks else handle, hooks=told) as work:
        gate.reached(2)
        assert queue.remove("gone") == "leased"
        work.beat()
        assert told.of("lost") == ["gone"]
        assert (items["gone"].lost, items["stays"].lost) == (True, False)
        assert not in_tasks or cancelled.wait(PATIENCE)
        queue.add_item(Item(b"", id="next"))
        gate.open()
        until(lambda: queue.stats().completed == 2)
        work.stop()
        assert work.result() == 2
    assert told.of("lost") == ["gone"]


def test_a_handler_has_its_time(colour: Colour, url: str) -> None:
    """The item goes back when the time is over; in asyncio the handler is cancelled, in threads it runs on."""
    queue = colour.queue("q", url)
    queue.add_item(Item(b"", id="a"))
    gate = Gate()
    backoff = Backoff(HOUR, HOUR)
    with shift(colour, queue, gate.handler(colour), time_limit=0.05, backoff=backoff) as work:
        until(lambda: queue.inspect("a").state == "delayed")
        assert queue.inspect("a").error == "TimeoutError: took longer than 0.05 seconds"
        gate.open()
        work.stop()
        assert work.result() == (0 if colour.name == "asyncio" else 1), "work that is done is done"


def test_at_most_once_completes_first(colour: Colour, url: str) -> None:
    queue, look = colour.queue("q", url), leaseq.WorkQueue("q", url)
    queue.add_items(Item(b"", id=f"i{n}") for n in range(30))
    states: list[str] = []

    def handle(item: Any) -> None:
        states.append(look.inspect(item.id).state)
        raise ValueError("once is enough")

    assert Shift(colour, queue, handle, burst=True, at_most_once=True).result() == 30
    assert states == ["absent"] * 30
    assert queue.stats().items == 0
    look.close()


def test_at_most_once_skips_what_it_could_not_complete(colour: Colour, url: str) -> None:
    queue, other = colour.queue("q", url), leaseq.WorkQueue("q", url)
    queue.add_items([Item(b"", id="gone"), Item(b"", id="stays")])
    handled: list[str] = []

    class Rival(Hooks):
        def leased(self, items: Any) -> None:
            other.remove("gone")

    options: Any = {"burst": True, "at_most_once": True, "hooks": Rival()}
    assert Shift(colour, queue, lambda item: handled.append(item.id), **options).result() == 1
    assert handled == ["stays"]
    other.close()


def test_stop_lets_handlers_finish_and_leases_no_more(colour: Colour, url: str) -> None:
    queue = colour.queue("q", url)
    queue.add_items(Item(b"") for _ in range(10))
    gate = Gate()
    with shift(colour, queue, gate.handler(colour), concurrency=2, grace_secs=HOUR) as work:
        gate.reached(2)
        work.stop()
        gate.open()
        assert work.result() == 2
    stats = queue.stats()
    assert (stats.completed, stats.ready, stats.leased) == (2, 8, 0)


@pytest.mark.parametrize("how", ["grace is over", "a second stop", "at once"])
def test_what_does_not_finish_goes_back_uncounted(colour: Colour, url: str, how: str) -> None:
    queue = colour.queue("q", url)
    queue.add_items([Item(b"", id="a"), Item(b"", id="b")])
    gate = Gate()
    grace = 0.05 if how == "grace is over" else HOUR
    with shift(colour, queue, gate.handler(colour), grace_secs=grace) as work:
        gate.reached(2)
        work.stop(at_once=how == "at once")
        if how == "a second stop":
            work.stop()
        assert work.result() == 0
        assert [(queue.inspect(name).state, queue.inspect(name).attempt) for name in "ab"] == [
            ("ready", 0)
        ] * 2
        gate.open()


def test_an_idle_worker_stops(colour: Colour, url: str) -> None:
    """It waits for items with nothing to end the wait; an item that comes later is not taken by a ghost."""
    queue, blocked = colour.queue("q", url), leaseq.WorkQueue("q", url)
    with shift(colour, queue, lambda _: None) as work:
        queue.add_item(Item(b""))
        until(lambda: queue.stats().completed == 1)
        work.stop()
        assert work.result() == 1
    queue.add_item(Item(b"", id="later"))
    item = blocked.lease(30, timeout=PATIENCE)
    assert item is not None
    blocked.close()


@pytest.mark.usefixtures("cap_of_an_hour")
def test_an_idle_worker_of_several_groups_stops(colour: Colour, redis_client: redis.Redis, url: str) -> None:
    """It waits in each group on a connection of its own; none of these waits is left behind."""
    before = set(threading.enumerate())
    queues = [colour.queue(name, url) for name in "abc"]
    with shift(colour, queues, lambda _: None) as work:
        until(lambda: redis_client.info("clients")["blocked_clients"] == len(queues))
        work.stop()
        assert work.result() == 0
    ours = {"leaseq", "leaseq worker"}
    until(lambda: not [each for each in set(threading.enumerate()) - before if each.name in ours])
    until(lambda: redis_client.info("clients")["blocked_clients"] == 0)
    for queue in queues:
        queue.add_item(Item(b"", id="later"))
        assert queue.lease(30, block=False) is not None


def test_a_worker_can_be_stopped_before_it_runs_and_run_again(colour: Colour, url: str) -> None:
    queue = colour.queue("q", url)
    queue.add_item(Item(b""))
    module: Any = leaseq.worker.aio if colour.name == "asyncio" else leaseq.worker
    real: Any = getattr(queue, "real", queue)

    async def handle_async(_: Any) -> None: ...

    handler: Any = handle_async if colour.name == "asyncio" else lambda _: None
    worker = module.Worker(real, handler, burst=True, handle_signals=False)
    worker.stop()
    assert start(colour, worker).result(PATIENCE) == 0
    assert start(colour, worker).result(PATIENCE) == 1


def test_a_closed_queue_ends_the_worker_with_an_error(colour: Colour, url: str) -> None:
    queue = colour.queue("q", url)
    with shift(colour, queue, lambda _: None) as work:
        queue.add_item(Item(b""))
        until(lambda: queue.stats().completed == 1)
        queue.close()
        with pytest.raises(leaseq.QueueClosedError):
            work.result()


def test_several_queues(colour: Colour, url: str) -> None:
    queues = [colour.queue(name, url, group="g") for name in ("a", "b")] + [colour.queue("c", url)]
    for queue in queues:
        queue.add_items(Item(b"x") for _ in range(40))
    with shift(colour, queues, lambda _: None) as work:
        until(lambda: all(queue.stats().completed == 40 for queue in queues))
        queues[2].add_item(Item(b"x"))
        until(lambda: queues[2].stats().completed == 41)
        work.stop()
        assert work.result() == 121
    fair = colour.queues(queues, fair=True)
    for queue in queues:
        queue.add_item(Item(b"x"))
    assert Shift(colour, fair, lambda _: None, burst=True).result() == 3


def test_ends_are_told_one_by_one_where_that_was_asked_for(
    colour: Colour, redis_client: redis.Redis, url: str
) -> None:
    queue = colour.queue("q", url)
    queue.add_items(Item(b"x") for _ in range(10))
    assert Shift(colour, queue, lambda _: None, group=False, burst=True).result() == 10
    assert queue.stats().completed == 10


def test_hooks_are_told_everything_and_cannot_do_harm(colour: Colour, url: str) -> None:
    queue = colour.queue("q", url)
    queue.add_items([Item(b"", id="good"), Item(b"", id="bad")])

    def handle(item: Any) -> None:
        if item.id == "bad":
            raise ValueError("no")

    told = Told()
    Shift(colour, queue, handle, hooks=told, burst=True, backoff=lambda _: HOUR).result()
    assert sorted(name for names in told.of("leased") for name in names) == ["bad", "good"]
    assert sorted(told.of("started")) == ["bad", "good"]
    assert sorted(told.of("ended")) == [("bad", "no"), ("good", None)]
    assert told.of("completed") == ["good"]
    assert told.of("released") == [("bad", HOUR, "ValueError: no")]

    class Broken(Hooks):
        def leased(self, items: Any) -> None:
            raise RuntimeError("hook")

        def around(self, item: Any) -> Any:
            raise RuntimeError("hook")

    queue.add_item(Item(b""))
    assert Shift(colour, queue, lambda _: None, hooks=Broken(), burst=True).result() == 1
