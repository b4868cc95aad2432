"""Features of a queue beyond add, lease and complete: headers, expiry, limits, pauses, dead letters."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from support.client_flavours import unwrap

import leaseq
from leaseq import Item

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour


def test_headers_of_another_client_pass_through(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-ITEM-2: bytes that are no UTF-8 can be read, and be handed on unharmed."""
    queue.add_item(Item(b"x", id="a", headers={"raw": b"\xff\xfe".decode("utf-8", "surrogateescape")}))
    item = queue.lease(30)
    assert item.headers["raw"].encode("utf-8", "surrogateescape") == b"\xff\xfe"
    queue.add_item(Item(b"x", id="b", headers=item.headers))
    second = queue.lease(30)
    assert second.headers == item.headers


def test_items_are_made_with_headers() -> None:
    """LQ-ITEM-2: whatever an item is made from, they are copied."""
    given = {"a": "b"}
    item = Item(b"x", headers=given, content_type="text/plain")
    given["a"] = "changed"
    assert (dict(item.headers), item.content_type) == ({"a": "b"}, "text/plain")
    copied = pickle.loads(pickle.dumps(item))  # noqa: S301 (our own)
    assert (copied.id, copied.data, copied.headers, copied.content_type) == (
        item.id,
        b"x",
        {"a": "b"},
        "text/plain",
    )
    made = Item.from_json_data([1], headers={"a": "b"}, content_type="application/json")
    assert (made.data, dict(made.headers), made.content_type) == (b"[1]", {"a": "b"}, "application/json")
    parsed = Item.from_json('{"data": "x", "id": "i", "headers": {"a": "b"}, "content_type": "t"}')
    assert (parsed.id, dict(parsed.headers), parsed.content_type) == ("i", {"a": "b"}, "t")


def test_a_derived_id_is_the_same_every_time(queue: Any) -> None:
    """LQ-ITEM-1: an id for a follow-up that is never too long because of the item's own."""
    queue.add_items([Item(b"x", id="order-5"), Item(b"x", id="ü" * 128)])
    short, long = queue.lease_items(2, 30)
    assert short.derived_id("ship") == "order-5/ship"
    assert short.derived_id(2) == "order-5/2"
    assert long.derived_id("ship") == long.derived_id("ship") != short.derived_id("ship")
    assert len(long.derived_id("ship")) == 64 + 5
    assert queue.add_item(Item(b"x", id=long.derived_id("s" * 191)))
    for wrong in (None, True, b"ship", 1.5):
        with pytest.raises(leaseq.BadTypeError):
            short.derived_id(wrong)


def test_a_pipeline_into_a_full_queue(flavour: ClientFlavour, url: str) -> None:
    """LQ-SCRIPT-3: the pipeline's own answer says that there was no room."""
    client = flavour.client(url)
    queue = flavour.queue("q", client)
    queue.configure(max_items=1)
    pipe = client.pipeline()
    assert queue.add_item(Item(b"x", id="a"), pipe=pipe) is False
    assert queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")], pipe=pipe) == []
    first, second = flavour.run(pipe.execute())
    assert first > 0
    assert second == [0, -1]


def test_a_list_with_something_else_puts_nothing_into_a_pipeline(flavour: ClientFlavour, url: str) -> None:
    """Also if that is in a later call than the first."""
    client = flavour.client(url)
    pipe, items = client.pipeline(), [Item(b"x", id=f"{n}") for n in range(300)]
    with pytest.raises(leaseq.BadTypeError):
        flavour.queue("q", client).add_items([*items, "no item"], pipe=pipe)  # type: ignore[list-item]
    assert len(pipe) == 0


def test_a_long_list_in_a_pipeline(flavour: ClientFlavour, url: str) -> None:
    """LQ-CALL-8: every call that the list is split into is in the pipeline."""
    client = flavour.client(url)
    pipe = client.pipeline()
    assert flavour.queue("q", client).add_items([Item(b"x", id=f"{n}") for n in range(600)], pipe=pipe) == []
    assert [len(reply) for reply in flavour.run(pipe.execute())] == [256, 256, 88]


def test_the_end_of_a_block_keeps_the_error(queue: Any) -> None:
    """LQ-RELEASE-2: type and text of the exception, also if its `str` fails."""
    queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")], max_attempts=1)
    first, second = queue.lease_items(2, 30)
    with pytest.raises(ValueError, match="ünlucky"), first:
        raise ValueError("ünlucky")

    class WordlessError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    with pytest.raises(WordlessError), second:
        raise WordlessError
    assert [dead.state for dead in queue.dead_letters()] == ["dead", "dead"]
    assert queue.inspect("a").error == "ValueError: ünlucky"
    assert "WordlessError" in queue.inspect("b").error


def bury(queue: Any, names: list[str], error: str) -> None:
    """Let items of these ids die."""
    queue.add_items([Item(b"x", id=name) for name in names])
    while items := queue.lease_items(256, 30, block=False):
        queue.dead_letter_items(items, error=error)


def test_revive_all(queue: Any) -> None:
    """LQ-RELEASE-3: page by page, all or those whose error matches."""
    bury(queue, [f"a{n}" for n in range(300)], "ConnectionError: refused")
    bury(queue, [f"b{n}" for n in range(300)], "ValueError: bad")
    assert queue.revive_all("no such error") == 0
    assert queue.revive_all("ValueError") == 300
    assert queue.stats().dead == 300
    assert queue.revive_all() == 300
    assert queue.revive_all() == 0
    stats = queue.stats()
    assert (stats.dead, stats.ready, stats.revived) == (0, 600, 600)


def test_purge_all_but_the_newest(queue: Any) -> None:
    """Items that died at the same moment as the oldest that is kept stay too."""
    for moment in (["a"], ["b", "c"], ["d"], ["e"]):
        queue.add_items(Item(b"", id=each) for each in moment)
        queue.dead_letter_items(queue.lease_items(2, 60))
    assert queue.purge_all(keep_newest=5) == 0
    assert queue.purge_all(3600, keep_newest=1) == 0
    assert queue.purge_all(keep_newest=3) == 1
    assert [info.id for info in queue.dead_letters()] == ["b", "c", "d", "e"]
    assert queue.purge_all(keep_newest=2) == 2
    assert queue.purge_all(keep_newest=1) == 1
    assert [info.id for info in queue.dead_letters()] == ["e"]
    for wrong, error in ((-1, leaseq.BadArgumentError), (1.5, leaseq.BadTypeError)):
        with pytest.raises(error, match="keep_newest"):
            queue.purge_all(keep_newest=wrong)


def test_purge_all(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-REMOVE-1: page by page, all or those that have been dead for that time."""
    bury(queue, [str(n) for n in range(600)], "bad")
    dead = "leaseq:{q}:q:dead"
    hour = 3_600_000_000
    for n in range(0, 600, 2):
        redis_client.zincrby(dead, -hour, str(n))
    assert queue.purge_all(7200) == 0
    assert queue.purge_all(1800) == 300
    assert queue.stats().dead == 300
    assert queue.purge_all() == 300
    assert queue.purge_all() == 0
    assert queue.purge_all(keep_newest=1) == 0
    stats = queue.stats()
    assert (stats.items, stats.purged, stats.completed) == (0, 600, 0)


def test_dead_letters_that_are_no_items(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-ERROR-5: damage that neither can end does not make them run without end, nor keep them from the rest."""
    redis_client.zadd("leaseq:{q}:q:dead", {f"ghost{n}": 1 for n in range(300)})
    bury(queue, ["a"], "bad")
    assert queue.revive_all() == 1
    bury(queue, ["b"], "bad")
    assert queue.purge_all() == 2


def test_what_the_calls_before_a_failed_one_answered(queue: Any) -> None:
    """LQ-CLIENT-2: in the form of the whole answer; and the items heard it."""
    queue.add_items(Item(b"x") for _ in range(512))
    extended, dying = queue.lease_items(256, 30), queue.lease_items(256, 30)
    queue.remove_items([extended[0].id, dying[0].id])
    no_item: Any = "no item"
    with pytest.raises(leaseq.BadTypeError) as caught:
        queue.extend_items([*map(unwrap, extended), no_item], 60)
    assert caught.value.answers == [False] + [True] * 255
    assert [item.lost for item in extended[:2]] == [True, False]
    with pytest.raises(leaseq.BadTypeError) as caught:
        queue.dead_letter_items([*map(unwrap, dying), no_item])
    assert caught.value.answers == [False] + [True] * 255
    assert [item.lost for item in dying[:2]] == [True, False]


def test_dead_letters_that_others_take_out_meanwhile(queue: Any, url: str) -> None:
    """LQ-DEAD-3: what they take moves the pages; what lay behind is found all the same."""
    bury(queue, [f"a{n}" for n in range(256)], "bad")
    bury(queue, [f"b{n}" for n in range(256)], "timeout")
    inspect_items = unwrap(queue).inspect_items
    purged: list[bool] = []

    def purge_and_inspect(ids: list[str]) -> Any:
        if not purged:
            with leaseq.WorkQueue("q", url) as other:
                purged.extend(other.purge_items(ids))
        return inspect_items(ids)

    unwrap(queue).inspect_items = purge_and_inspect
    assert queue.revive_all("timeout") == 256
    assert purged == [True] * 256
