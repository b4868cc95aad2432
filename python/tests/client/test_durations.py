"""Durations and times of a queue: numbers of seconds, timedeltas, datetimes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.client_flavours import unwrap
from support.redis_probe import count_blocked

import leaseq
from leaseq import Item
from leaseq.commands import Completion

if TYPE_CHECKING:
    from collections.abc import Callable

    import redis
    from support.client_flavours import ClientFlavour

LONG = timedelta(days=1, milliseconds=500)
SECONDS = LONG.total_seconds()
NOTHING = timedelta()
AT_ONCE = timedelta(milliseconds=20)


def test_each_call_takes_a_timedelta(queue: Any, flavour: ClientFlavour) -> None:
    now = queue.stats().now
    queue.add_item(Item(b"", id="late"), delay=LONG, expires_in=2 * LONG, keep=LONG)
    queue.add_item(Item(b"", id="soon"), delay=NOTHING, keep=NOTHING)
    queue.add_items([Item(b"", id="many")], delay=LONG)
    queue.add_item_when_room(Item(b"", id="room"), timeout=LONG, delay=LONG)
    queue.add_items_when_room([Item(b"", id="rooms")], timeout=LONG, delay=LONG)
    for name in ("late", "many", "room", "rooms"):
        assert abs(queue.inspect(name).time - now - SECONDS) < 60
    late = queue.inspect("late")
    assert abs(late.expires - late.created - 2 * SECONDS) < 1
    assert late.keep == SECONDS
    item = queue.lease(LONG, timeout=LONG)
    assert (item.id, item.hold.secs) == ("soon", SECONDS)
    assert abs(item.deadline - now - SECONDS) < 60
    assert queue.extend(item, 2 * LONG)
    assert item.hold.secs == 2 * SECONDS
    assert queue.release(item, delay=NOTHING) == "ready"
    again = queue.lease_items(1, LONG, timeout=AT_ONCE)[0]
    assert queue.extend_items([again], LONG) == [True]
    assert queue.complete(again, result=b"r", keep=LONG)
    assert queue.outcome("soon", timeout=NOTHING).content == b"r"
    assert queue.lease(LONG, timeout=AT_ONCE) is None
    assert list(queue.items(LONG, timeout=AT_ONCE)) == []
    assert flavour.queues([queue]).lease(LONG, timeout=AT_ONCE) is None


@pytest.mark.parametrize("nothing", [0, 0.0, NOTHING])
@pytest.mark.parametrize("several", [False, True])
def test_a_lease_without_a_limit_of_time_waits(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis, nothing: Any, *, several: bool
) -> None:
    leasing = flavour.queues([queue]) if several else queue
    waiting = flavour.start(lambda: leasing.lease(LONG, timeout=nothing))
    servers.wait_until(lambda: count_blocked(redis_client) == 1)
    assert not waiting.done()
    queue.add_item(Item(b"", id="a"))
    assert waiting.result(servers.TIMEOUT_SECS).id == "a"


def test_ends_and_follow_ups_take_a_timedelta(queue: Any, flavour: ClientFlavour) -> None:
    queue.add_items([Item(b"", id=name) for name in "abcd"])
    items = flavour.queues([queue]).lease_items(4, LONG)
    assert [item.hold.secs for item in items] == [SECONDS] * 4
    assert queue.release_items([items[0]], delay=LONG) == ["delayed"]
    assert queue.complete_items([Completion(unwrap(items[1]), result=b"r", keep=LONG)])
    assert queue.complete(items[2], then=[(unwrap(queue), Item(b"", id="next"), {"delay": LONG})])
    assert abs(queue.inspect("next").time - queue.stats().now - SECONDS) < 60
    assert queue.dead_letter(items[3])
    assert not queue.purge("d", older_than=LONG)
    assert queue.purge_items(["d"], older_than=LONG) == [False]
    assert queue.purge_all(LONG) == 0
    assert queue.purge("d", older_than=NOTHING)
    queue.add_item(Item(b"", id="last"))
    assert queue.complete_and_lease(queue.lease(LONG), LONG) == (True, None)


def test_a_time_is_a_number_or_a_datetime(queue: Any) -> None:
    moment = queue.stats().now + SECONDS
    queue.add_item(Item(b"", id="number"), not_before=moment)
    queue.add_item(Item(b"", id="datetime"), not_before=datetime.fromtimestamp(moment, UTC))
    for name in ("number", "datetime"):
        assert abs(queue.inspect(name).time - moment) < 0.01


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda queue: queue.lease("30"), leaseq.BadTypeError, "lease_secs must be a number of seconds or a timedelta"),
        (lambda queue: queue.lease(True), leaseq.BadTypeError, "timedelta, not bool"),
        (lambda queue: queue.lease(-LONG), leaseq.BadArgumentError, "lease_secs"),
        (lambda queue: queue.lease(timedelta.max), leaseq.BadArgumentError, "lease_secs"),
        (lambda queue: queue.lease(LONG, timeout=-LONG), leaseq.BadArgumentError, "timeout must not be negative"),
        (lambda queue: queue.add_item(Item(b""), keep=timedelta(microseconds=1)), leaseq.BadArgumentError, "shorter"),
        (lambda queue: queue.add_item(Item(b""), keep=""), leaseq.BadTypeError, "keep"),
        (lambda queue: queue.add_item(Item(b""), delay=datetime.now(UTC)), leaseq.BadTypeError, "not datetime"),
        (lambda queue: queue.add_item(Item(b""), not_before=LONG), leaseq.BadTypeError, "1970 or a datetime, not timed"),
        (lambda queue: queue.add_item(Item(b""), not_before=datetime(2030, 1, 1)), leaseq.BadArgumentError, "time zone"),  # noqa: DTZ001
        (lambda queue: queue.purge_all(-LONG), leaseq.BadArgumentError, "older_than"),
    ],
)  # fmt: skip
def test_what_is_no_duration_or_time_is_refused(
    queue: Any, call: Callable[[Any], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(queue)
    assert queue.stats().added == 0
