"""Each option of a call, other than by default, in every call that takes it: a dropped option shows here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.client_flavours import unwrap
from support.redis_probe import finished, look

import leaseq
from leaseq import Item
from leaseq.commands import ReleaseRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.client_flavours import ClientFlavour

HOUR = 3600.0
DAY = 24 * HOUR
ADDITIONS: dict[str, Callable[..., Any]] = {
    "one": lambda queue, item, **options: queue.add_item(item, **options),
    "several": lambda queue, item, **options: queue.add_items([Item(b""), item], **options)[1],
    "one when there is room": lambda queue, item, **options: queue.add_item_when_room(
        item, timeout=0, **options
    ),
    "several when there is room": lambda queue, item, **options: queue.add_items_when_room(
        [Item(b""), item], timeout=0, **options
    )[1],
}


def follow(queue: Any, item: Item, **options: Any) -> bool:
    """Add an item behind an item that is completed."""
    queue.add_item(Item(b"", id="first"), priority=7)
    return bool(queue.complete(queue.lease(30), then=[(unwrap(queue), item, options)]).added[0])


ADDITIONS["behind another one"] = follow
YEAR_2050 = datetime(2050, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("how", ADDITIONS)
def test_every_addition_takes_all_options(queue: Any, how: str) -> None:
    """LQ-ADD-1: also together, and those of the one before are not those of the next."""
    add = ADDITIONS[how]
    options: Any = {
        "delay": HOUR,
        "priority": -3,
        "max_attempts": 7,
        "expires_in": 2 * HOUR,
        "dead_on_expiry": True,
        "keep": 90.0,
    }
    given = Item(b"data", id="a", headers={"k": "v"}, content_type="text/plain")
    before = queue.stats().now
    assert add(queue, given, **options)
    after = queue.stats().now
    assert add(queue, Item(b"plain", id="b"))
    assert add(queue, Item(b"later", id="c"), not_before=YEAR_2050)
    info = queue.inspect("a")
    assert (info.state, info.priority, info.max_attempts, info.keep, info.size) == ("delayed", -3, 7, 90, 4)
    assert before + HOUR <= info.time + 0.001
    assert info.time <= after + HOUR + 0.001
    assert info.expires - info.created == pytest.approx(2 * HOUR, abs=0.01)
    plain = queue.inspect("b")
    assert (plain.state, plain.priority, plain.max_attempts, plain.keep) == ("ready", 0, 0, 0)
    assert plain.expires == 0
    assert (queue.inspect("c").state, queue.inspect("c").time) == ("delayed", YEAR_2050.timestamp())
    assert not add(queue, Item(b"again", id="b"), delay=HOUR)
    assert queue.inspect("b").state == "ready"


@pytest.mark.parametrize("how", ADDITIONS)
@pytest.mark.parametrize("none", [0, 0.0, timedelta(0)], ids=repr)
def test_a_delay_of_nothing_is_none(queue: Any, how: str, none: Any) -> None:
    assert ADDITIONS[how](queue, Item(b"", id="a"), delay=none, not_before=YEAR_2050)
    assert queue.inspect("a").time == YEAR_2050.timestamp()


@pytest.mark.parametrize("none", [0, 0.0, timedelta(0)], ids=repr)
def test_a_dead_letter_takes_a_delay_of_nothing(queue: Any, flavour: ClientFlavour, none: Any) -> None:
    queue.add_item(Item(b"", id="a"))
    module: Any = leaseq._aio.queue if flavour.name == "asyncio" else leaseq._sync.queue
    request = ReleaseRequest(unwrap(queue.lease(30)), none, dead=True)
    assert flavour.run(module.release_each(unwrap(queue), [request])) == ["dead"]


@pytest.mark.parametrize("how", ADDITIONS)
@pytest.mark.parametrize("dead", [False, True])
def test_what_expires_is_deleted_or_dies_as_it_was_added(queue: Any, how: str, *, dead: bool) -> None:
    ADDITIONS[how](queue, Item(b"", id="a"), expires_in=0.001, dead_on_expiry=dead)
    expired = queue.stats().now + 0.002
    servers.wait_until(lambda: queue.stats().now > expired)
    queue.light_clean()
    assert queue.inspect("a").state == ("dead" if dead else "absent")


@pytest.mark.parametrize("keep", [None, 60.0], ids=["no outcome", "outcome"])
class TestCompleteAndLease:
    """The same answers, whether it takes one round trip or two."""

    def test_the_next_one(self, queue: Any, keep: float | None) -> None:
        queue.add_items([Item(b"1", id="a"), Item(b"2", id="b", headers={"k": "v"})], keep=keep)
        first = queue.lease(30)
        first.result = b"done"
        before = queue.stats().now
        done, second = queue.complete_and_lease(first, HOUR)
        after = queue.stats().now
        assert (done, second.id, second.data, second.headers) == (True, "b", b"2", {"k": "v"})
        assert (second.attempt, second.keep) == (1, keep or 0)
        assert before + HOUR - 0.001 <= second.deadline <= after + HOUR + 0.001
        assert queue.complete_and_lease(second, HOUR) == (True, None)
        assert queue.complete_and_lease(second, HOUR)[1] is None
        assert look(queue, "a")[0] == (("result", b"done") if keep else ("absent", b""))
        assert queue.stats().items == 0

    def test_only_the_current_lease(self, queue: Any, keep: float | None) -> None:
        queue.add_items([Item(b"", id="a"), Item(b"", id="b")], keep=keep, priority=1)
        stale = queue.lease(30)
        queue.release(stale, uncounted=True)
        queue.lease(30)
        done, second = queue.complete_and_lease(stale, HOUR, only_current=True)
        assert (done, second.id) == (False, "b")
        assert queue.inspect("a").state == "leased"
        assert queue.complete_and_lease(stale, HOUR)[0] is True

    def test_one_that_is_gone(self, queue: Any, keep: float | None) -> None:
        queue.add_items([Item(b"", id="a"), Item(b"", id="b")], keep=keep)
        first = queue.lease(30)
        queue.remove("a")
        done, second = queue.complete_and_lease(first, HOUR)
        assert (done, second.id) == (False, "b")


def test_a_lease_that_fails_behind_a_completion_has_the_answer_of_that(
    queue: Any, flavour: ClientFlavour, url: str
) -> None:
    """LQ-CLIENT-2."""
    queue.add_item(Item(b"", id="a"), keep=60)
    item = queue.lease(30)
    real = unwrap(queue)
    lease = real.lease

    def fail(*args: Any, **options: Any) -> Any:
        raise leaseq.UnavailableError("away")

    real.lease = fail
    with pytest.raises(leaseq.UnavailableError) as caught:
        queue.complete_and_lease(item, 30)
    real.lease = lease
    assert caught.value.answers == [True]
    assert flavour.queue("q", url).outcome("a", timeout=0).state == "result"


def test_each_completion_has_its_own_options(queue: Any) -> None:
    """LQ-CLIENT-7."""
    queue.add_items([Item(b"", id=name) for name in "abcde"], keep=60)
    a, b, c, d, e = queue.lease_items(5, 30)
    for item in (c, d):
        queue.release(item, uncounted=True)
    queue.lease_items(2, 30)
    e.result = b"of the item"
    answers = queue.complete_items(
        [
            finished(a, result=b"1", keep=HOUR),
            finished(b, result="2", keep=0),
            finished(c, result=b"3", only_current=True),
            finished(d, result=b"4", then=[(queue, Item(b"", id="next"), {"priority": 2, "delay": HOUR})]),
            finished(e),
        ]
    )
    assert [answer.completed for answer in answers] == [True, True, False, True, True]
    assert [answer.added for answer in answers] == [[], [], [], [True], []]
    assert look(queue, *"abcde") == [
        ("result", b"1"),
        ("absent", b""),
        ("leased", b""),
        ("result", b"4"),
        ("result", b"of the item"),
    ]
    forgotten = {entry.id: entry.time for entry in queue.list_items("kept").items}
    kept = {outcome.id: forgotten[outcome.id] - outcome.ended for outcome in queue.outcomes(["a", "d", "e"])}
    assert kept == pytest.approx({"a": HOUR, "d": 60, "e": 60}, abs=0.01)
    following = queue.inspect("next")
    assert (following.state, following.priority) == ("delayed", 2)


@pytest.mark.parametrize("together", [False, True])
def test_a_completion_of_the_current_lease_alone(queue: Any, *, together: bool) -> None:
    queue.add_item(Item(b"", id="a"))
    stale = queue.lease(30)
    queue.release(stale, uncounted=True)
    current = queue.lease(30)

    def complete(item: Any, **options: Any) -> bool:
        return bool(
            queue.complete_items([item], **options)[0] if together else queue.complete(item, **options)
        )

    assert complete(stale, only_current=True) is False
    assert queue.inspect("a").state == "leased"
    assert complete(current, only_current=True) is True
    with pytest.raises(leaseq.BadArgumentError, match="only_current"):
        queue.complete_items([finished(current)], only_current=True)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("options", "state", "attempt"),
    [
        ({}, "ready", 1),
        ({"delay": HOUR}, "delayed", 1),
        ({"uncounted": True}, "ready", 0),
        ({"delay": HOUR, "uncounted": True}, "delayed", 0),
    ],
    ids=str,
)
@pytest.mark.parametrize("error", [None, "why"])
def test_a_release_takes_all_options(
    queue: Any, options: Any, state: str, attempt: int, error: str | None, *, together: bool
) -> None:
    """LQ-RELEASE-1: a lease that is lost changes nothing."""
    queue.add_item(Item(b"", id="a"))
    item = queue.lease(30)
    before = queue.stats().now
    if together:
        assert queue.release_items([item], error=error, **options) == [state]
    else:
        assert queue.release(item, error=error, **options) == state
    info = queue.inspect("a")
    assert (info.state, info.attempt, info.error) == (state, attempt, error or "")
    if options.get("delay"):
        assert before + HOUR - 0.001 <= info.time <= queue.stats().now + HOUR
    assert item.lost is False
    assert (queue.release_items([item]) if together else [queue.release(item)]) == ["lost"]
    assert item.lost is True


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("error", [None, "why"])
def test_a_dead_letter_has_its_error(queue: Any, error: str | None, *, together: bool) -> None:
    queue.add_item(Item(b"", id="a"), max_attempts=9)
    item = queue.lease(30)
    if together:
        assert queue.dead_letter_items([item], error=error) == [True]
        assert queue.dead_letter_items([item]) == [False]
    else:
        assert queue.dead_letter(item, error=error) is True
        assert queue.dead_letter(item) is False
    assert (queue.inspect("a").state, queue.inspect("a").error) == ("dead", error or "")


@pytest.mark.parametrize("state", ["ready", "delayed", "leased", "dead", "kept"])
def test_every_list_has_pages_in_both_directions(queue: Any, state: Any) -> None:
    names = [f"{number}" for number in range(5)]
    for number, name in enumerate(names):
        queue.add_item(Item(b"", id=name), delay=HOUR + number if state == "delayed" else 0, keep=DAY)
        if state in {"leased", "dead", "kept"}:
            item = queue.lease(HOUR + number)
            if state == "dead":
                queue.dead_letter(item)
            elif state == "kept":
                queue.complete(item, keep=HOUR + number)

    def page(**options: Any) -> list[str]:
        found = queue.list_items(state, **options)
        assert found.total == 5
        return [entry.id for entry in found.items]

    assert page() == names
    assert page(backward=True) == names[::-1]
    assert page(limit=2) == names[:2]
    assert page(offset=1, limit=2) == names[1:3]
    assert page(offset=3) == names[3:]
    assert page(offset=1, limit=2, backward=True) == names[::-1][1:3]
    assert page(offset=5) == []


def test_dead_letters_have_pages(queue: Any) -> None:
    for name in "abcd":
        queue.add_item(Item(b"", id=name))
        queue.dead_letter(queue.lease(30), error=name)
    assert [info.error for info in queue.dead_letters()] == list("abcd")
    assert [info.id for info in queue.dead_letters(offset=1, limit=2)] == ["b", "c"]
    assert [info.id for info in queue.dead_letters(backward=True, limit=1)] == ["d"]


@pytest.mark.parametrize("limit", ["max_data", "max_items", "max_attempts"])
def test_a_limit_that_is_set_leaves_the_others(queue: Any, limit: str) -> None:
    before = {"max_data": 1000, "max_items": 20, "max_attempts": 3}
    queue.configure(**before)
    queue.pause()
    queue.configure(**{limit: 7})
    stats = queue.stats()
    assert {name: getattr(stats, name) for name in before} == {**before, limit: 7}
    assert stats.paused
    queue.resume()
    assert queue.stats().paused is False


def test_a_purge_takes_what_has_been_dead_for_long(queue: Any) -> None:
    queue.add_items([Item(b"", id=name) for name in "ab"])
    queue.dead_letter_items(queue.lease_items(2, 30))
    assert queue.purge("a", older_than=HOUR) is False
    assert queue.purge_items(["a", "b"], older_than=HOUR) == [False, False]
    assert queue.stats().dead == 2
    assert queue.purge_items(["a", "c"]) == [True, False]
    assert queue.purge("b") is True


@pytest.mark.parametrize("call", ["lease", "lease_items"])
@pytest.mark.parametrize("several", [False, True])
def test_a_lease_that_is_not_to_wait_does_not(
    flavour: ClientFlavour, url: str, call: str, *, several: bool
) -> None:
    """Whatever the timeout. It has the time that was asked for."""
    one = flavour.queue("q", url)
    queue: Any = flavour.queues([one, flavour.queue("other", url, group="q")]) if several else one
    count = () if call == "lease" else (3,)
    for wait in ({"block": False}, {"block": False, "timeout": 60}, {"timeout": 0.001}):
        assert not getattr(queue, call)(*count, 30, **wait)
    one.add_items([Item(b"") for _ in range(4)])
    before = one.stats().now
    found = getattr(queue, call)(*count, HOUR, block=False)
    items = [found] if call == "lease" else found
    assert len(items) == (3 if count else 1)
    assert all(before + HOUR - 0.001 <= item.deadline <= one.stats().now + HOUR for item in items)


def test_requests_to_release_are_of_one_call(queue: Any, flavour: ClientFlavour) -> None:
    """Each has separate options."""
    queue.add_items([Item(b"", id=name) for name in "abcd"], max_attempts=9)
    a, b, c, d = queue.lease_items(4, 30)
    module: Any = leaseq._aio.queue if flavour.name == "asyncio" else leaseq._sync.queue
    requests = [
        ReleaseRequest(unwrap(a), HOUR),
        ReleaseRequest(unwrap(b), uncounted=True),
        ReleaseRequest(unwrap(c), error="why"),
        ReleaseRequest(unwrap(d), error="dead", dead=True),
    ]
    answers = flavour.run(module.release_each(unwrap(queue), requests))
    assert answers == ["delayed", "ready", "ready", "dead"]
    infos = queue.inspect_items(list("abcd"))
    assert [(info.attempt, info.error) for info in infos] == [(1, ""), (0, ""), (1, "why"), (1, "dead")]


def test_a_loop_over_items_has_the_time_that_was_asked_for(flavour: ClientFlavour, url: str) -> None:
    queue = flavour.queue("q", url)
    other = flavour.queue("other", url, group="q")
    for source in (queue, flavour.queues([other, queue])):
        queue.add_items([Item(b"") for _ in range(2)])
        found = []
        for item in source.items(HOUR, timeout=0.01):
            with item:
                assert item.deadline > queue.stats().now + HOUR - 60
            found.append(item)
        assert len(found) == 2
