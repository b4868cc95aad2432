"""Properties that the short ways of a call must keep: the calls sent, the release of locks and connections, clocks, bytes."""

from __future__ import annotations

import asyncio
import enum
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import hiredis
import pytest
from support.client_flavours import unwrap

import leaseq
from leaseq import Item, flows
from leaseq.commands import Completion, add, add_each, add_one, add_options, complete
from leaseq.commands.encoding import UNREADABLE
from leaseq.item import Hold, LeasedItemBase
from leaseq.keys import QueueKeys
from leaseq.process import fork
from leaseq.worker._aio import handler_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import redis

    from leaseq.worker.in_flight import HandlerResult

HOUR = 3600.0
TIMEOUT_SECS = 60.0


@pytest.mark.parametrize("timeout", [-1, float("inf"), float("nan"), "1"])
def test_what_is_wrong_with_a_lease_is_told_before_it_takes_anything(queue: Any, timeout: Any) -> None:
    queue.add_item(Item(b"x"))
    with pytest.raises(leaseq.LeaseqError, match="timeout"):
        queue.lease(HOUR, timeout=timeout)
    assert queue.stats().leases == 0


def test_what_a_call_ended_is_not_extended_any_more_and_all_else_is(queue: Any) -> None:
    queue.add_items([Item(b"x", id=name) for name in "abcd"])
    items = queue.lease_items(4, HOUR)
    beats = unwrap(queue).heartbeater._schedule
    for item in items:
        item.__enter__()
    assert list(beats._next) == unwrap(items)
    assert queue.complete_items(items[:2]) == [True, True]
    assert beats.pause(0)
    assert list(beats._next) == unwrap(items[2:])
    assert queue.complete(items[2])
    assert beats.pause(0)
    assert list(beats._next) == unwrap(items[3:])
    for item in items:
        item.__exit__(None, None, None)
    assert not beats.any
    assert queue.stats().completed == 4


FORKS = """
import os
from leaseq.process import THIS

def forked(depth):
    assert THIS.number == os.getpid()
    if depth:
        child = os.fork()
        if child == 0:
            forked(depth - 1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert THIS.number == os.getpid()

forked(3)
"""


def test_the_child_of_a_fork_is_another_process() -> None:
    """The connections, locks and threads of a process are not for its child, nor for a child of that."""
    subprocess.run([sys.executable, "-c", FORKS], check=True, timeout=240)


def test_a_call_in_the_child_of_a_fork_has_a_connection_of_its_own(
    url: str, redis_client: redis.Redis
) -> None:
    """Two processes that call at the same time read their own answers, and no others."""
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_item(Item(b"x", id="before"))
        children = []
        for name in ("a", "b"):
            child, _ = fork()
            if child == 0:
                added = [queue.add_item(Item(b"x", id=f"{name}{number}")) for number in range(50)]
                os._exit(0 if all(added) and not queue.add_item(Item(b"x", id=f"{name}0")) else 1)
            children.append(child)
        assert [queue.add_item(Item(b"x", id="before")) for _ in range(50)] == [False] * 50
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
        assert queue.stats().items == 101


BYTES = flows.CHUNK_BYTES


@pytest.mark.parametrize(
    ("sizes", "chunks"),
    [
        ([], []),
        ([0] * 256, [256]),
        ([0] * 513, [256, 256, 1]),
        ([BYTES], [1]),
        ([BYTES + 1, 0, 1], [1, 2]),
        ([BYTES, 0, 1, BYTES - 1, 0], [2, 3]),
        ([BYTES // 2, BYTES // 2, 1], [2, 1]),
        ([BYTES + 1] * 3, [1, 1, 1]),
        ([1] * 255 + [BYTES, 1], [255, 1, 1]),
    ],
)
def test_a_call_takes_as_many_as_it_may(sizes: list[int], chunks: list[int]) -> None:
    """At most 256 entries and 4 MiB, and always one; each is asked once for its size, and none before its turn."""
    asked: list[int] = []

    def size(member: int) -> int:
        asked.append(member)
        return sizes[member]

    def members() -> Iterator[int]:
        for member in range(len(sizes)):
            assert len(asked) == member
            yield member

    split = list(flows.chunks(members(), size))
    assert [len(chunk) for chunk in split] == chunks
    assert [member for chunk in split for member in chunk] == asked == list(range(len(sizes)))


packed: Callable[[Any], bytes] = hiredis.pack_command

KEYS = QueueKeys("q")
ITEMS = [
    Item(b"x", id="ä"),
    Item(b"x", id="h", headers={"h": "v"}),
    Item(b"x", id="t", content_type="t"),
    Item(b"x", id="both", headers={"h": "v"}, content_type="t"),
]


@pytest.mark.parametrize("options", [{}, {"delay": 1.5, "priority": -3}], ids=["plain", "with options"])
def test_items_are_written_alike_one_by_one_and_together(options: dict[str, Any]) -> None:
    """`add` gives all the same options, `add_each` each its own: the same bytes."""
    written = add_options(**options)
    together = add(KEYS, ITEMS, written).evalsha()
    apart = add_each(KEYS, [(item, written) for item in ITEMS]).evalsha()
    assert packed(together) == packed(apart)


@pytest.mark.parametrize("options", [{}, {"delay": 1.5, "priority": -3}], ids=["plain", "with options"])
@pytest.mark.parametrize("item_id", ["a", "ä€", "x" * 256])
@pytest.mark.parametrize("data", [b"", b"\r\n$1\r\nx\r\n", b"x" * 100_000])
def test_one_item_is_written_as_it_is_packed(options: dict[str, Any], item_id: str, data: bytes) -> None:
    """The bytes that `add_one` puts together are those of its arguments, and of `add`."""
    written = add_options(**options)
    one = add_one(KEYS, Item(data, id=item_id), written)
    assert (
        one.packed == packed(one.evalsha()) == packed(add(KEYS, [Item(data, id=item_id)], written).evalsha())
    )


@pytest.mark.parametrize("item", ITEMS[1:], ids=lambda item: item.id)
def test_one_item_with_more_is_written_as_several_are(item: Item) -> None:
    one = add_one(KEYS, item)
    assert one.packed is None
    assert packed(one.evalsha()) == packed(add(KEYS, [item]).evalsha())


class Level(int, enum.Enum):
    """A number that says another name."""

    HIGH = 5


class Text(str):
    """A str that encodes itself differently."""

    __slots__ = ()

    def encode(self, *_: object, **__: object) -> bytes:
        return b"other"


class Data(bytes):
    """Bytes that report another length."""

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("item", [Item(b"x"), Item(b"x", headers={"a": "b"})])
@pytest.mark.parametrize("reply", [b"7", "7", [7], None, 7.5])
def test_a_reply_to_one_item_that_is_no_number_is_not_read_as_one(item: Item, reply: Any) -> None:
    with pytest.raises(UNREADABLE):
        add_one(KEYS, item).parse(reply)


@pytest.mark.parametrize(
    ("item", "options"),
    [
        (Item(b"x", id="a"), {"priority": Level.HIGH}),
        (
            Item(b"x", id="a"),
            {"priority": 5},
        ),  # which is equal, so the first of them decides for both in a cache
        (Item(b"x", id=Text("a")), {}),
        (Item(Data(b"abc"), id="a"), {}),
    ],
)
def test_one_item_of_derived_types_is_written_as_it_is(item: Item, options: dict[str, Any]) -> None:
    plain: dict[str, Any] = dict.fromkeys(options, 5)
    as_it_is = add(KEYS, [Item(bytes(memoryview(item.data)), id=str.__str__(item.id))], add_options(**plain))
    one = add_one(KEYS, item, add_options(**options))
    assert packed(one.evalsha()) == packed(as_it_is.evalsha())
    assert one.packed is None or one.packed == packed(as_it_is.evalsha())


@pytest.mark.parametrize(("only_current", "options"), [(False, (0,)), (True, (1, "only_current", 1))])
def test_a_count_as_text_is_the_number(*, only_current: bool, options: tuple[str | int, ...]) -> None:
    item = LeasedItemBase("a", b"", 10**15, 1, 0.0, 30)
    sent = complete(KEYS, [Completion(item, only_current=only_current)]).evalsha()
    head = sent[: -len(options) - 3]
    assert packed(sent) == packed((*head, 1, "a", 10**15, *options))


class Clock:
    """Goes on when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def come(to: list[Any], count: int) -> None:
    """Let other tasks run until a list has grown to this length."""
    for _ in range(1000):
        if len(to) == count:
            return
        await asyncio.sleep(0)
    raise AssertionError(to)


async def test_a_task_counts_the_time_of_its_own_items_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look at the clock ends one handler and starts the next, but not after a wait for items or for others."""
    clock, ends, begun = Clock(), list[Any](), list[float]()
    monkeypatch.setattr(handler_pool, "now", clock)
    latch = asyncio.Event()

    async def handler(item: Any) -> None:
        begun.append(at_work._slots[0].since)
        clock.now += item.seconds
        if item.waits:
            await latch.wait()

    at_work: Any = handler_pool.HandlerPool(handler, 1, ends.append)
    at_work.start()

    await asyncio.sleep(0)
    clock.now = 100.0  # nothing to do in that time
    at_work.put([Work(1.0), Work(2.0)])
    await come(ends, 2)
    clock.now = 1000.0
    at_work.put([Work(4.0, waits=True), Work(8.0)])
    await come(begun, 3)
    clock.now += 50.0
    latch.set()
    await come(ends, 4)
    await at_work.end()
    assert begun == [100.0, 101.0, 1000.0, 1054.0]
    assert [seconds(end) for end in ends] == [1.0, 2.0, 54.0, 8.0]


async def test_handlers_that_never_wait_let_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ends = Clock(), list[Any]()
    monkeypatch.setattr(handler_pool, "now", clock)
    turns: list[int] = []

    async def handler(item: Any) -> None:
        clock.now += item.seconds

    async def other() -> None:
        while True:
            turns.append(len(ends))
            await asyncio.sleep(0)

    at_work: Any = handler_pool.HandlerPool(handler, 1, ends.append)
    at_work.start()
    await asyncio.sleep(0)
    watching = asyncio.create_task(other())
    at_work.put([Work(handler_pool.TURN_SECS * 0.6) for _ in range(8)])
    await come(ends, 8)
    watching.cancel()
    await at_work.end()
    assert {2, 4, 6} <= set(turns), "after two of these a turn is over"
    assert not {1, 3, 5} & set(turns)


class Work:
    """An item whose handler takes this time."""

    def __init__(self, seconds: float, *, waits: bool = False) -> None:
        self.seconds = seconds
        self.waits = waits
        self.hold = Hold(0.0, 30, None, None)


def seconds(end: HandlerResult) -> float:
    return end[2]
