"""Items that follow: completing and adding in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.redis_probe import calls, finished

import leaseq
from leaseq import Item

if TYPE_CHECKING:
    import redis
    from support import servers
    from support.client_flavours import ClientFlavour


def test_an_empty_hand_off(queue: Any) -> None:
    """LQ-COMPLETE-1: `then` says what kind of answer comes, also when there is nothing in it."""
    queue.add_items([Item(b"x"), Item(b"x")])
    first, second = queue.lease_items(2, 30)
    assert queue.complete(first, then=[]) == leaseq.Completed(completed=True, added=[])
    assert queue.complete(first, then=iter([])) == leaseq.Completed(completed=False, added=[])
    assert queue.complete(second, result=b"x") is True


def test_a_queue_of_another_group(flavour: ClientFlavour, redis_client: redis.Redis, url: str) -> None:
    """LQ-CLIENT-9: refused before anything is sent; the message says how to group them."""
    first, second = flavour.queue("first", url), flavour.queue("second", url)
    first.add_item(Item(b"x", id="a"))
    item = first.lease(30)
    assert item is not None
    redis_client.config_resetstat()
    with pytest.raises(
        leaseq.CrossGroupError, match=r"WorkQueue\('second', \.\.\., group='first'\)"
    ) as caught:
        first.complete(item, then=[(second, Item(b"x"))])
    assert caught.value.definite
    first.add_items(Item(b"x") for _ in range(256))
    items = first.lease_items(256, 30)
    redis_client.config_resetstat()
    with pytest.raises(leaseq.CrossGroupError):
        first.finish_items([*map(finished, items), finished(item, then=[(second, Item(b"x"))])])
    assert calls(redis_client) == 0, "not even the call that would have been good"
    assert first.inspect("a").state == "leased"
    with flavour.queue("second", url, group="first") as grouped:
        assert first.complete(item, then=[(grouped, Item(b"x"))])


def test_a_queue_on_another_server(flavour: ClientFlavour, own_server: servers.StartServer, url: str) -> None:
    """LQ-CLIENT-9: the call would put the follow-up on the first queue's server, where nobody looks for it."""
    first = flavour.queue("first", url)
    elsewhere = flavour.queue("second", own_server().url, group="first")
    first.add_item(Item(b"x", id="a"))
    item = first.lease(30)
    assert item is not None
    with pytest.raises(leaseq.CrossGroupError, match="another server or database") as caught:
        first.complete(item, then=[(elsewhere, Item(b"x"))])
    assert caught.value.definite
    assert first.inspect("a").state == "leased"


def test_finish_many_with_one_that_is_too_much(queue: Any) -> None:
    """LQ-CLIENT-2: what a script refuses changes nothing; the calls before it are told."""
    queue.add_items(Item(b"x", id=str(n)) for n in range(257))
    items = queue.lease_items(256, 30) + queue.lease_items(1, 30)
    too_many: list[Any] = [(queue, Item(b"x")) for _ in range(257)]
    with pytest.raises(leaseq.BadArgumentError) as caught:
        queue.finish_items([*map(finished, items[:256]), finished(items[256], then=too_many)])
    assert [answer.completed for answer in caught.value.answers] == [True] * 256
    assert queue.stats().items == 1
    with pytest.raises(leaseq.BadTypeError, match="Finished"):
        queue.finish_items([items[256]])
    with items[0], items[256]:
        pass
    assert queue.stats().completed == 257


def test_a_finished_item_in_a_block_is_left_alone(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-COMPLETE-2: whatever call of the block ended it, the end of the block sends nothing."""
    queue.add_items([Item(b"x", id=name) for name in "abcd"])
    a, b, c, d = queue.lease_items(4, 30)
    with a, b, c, d:
        queue.complete(a, result=b"x", keep=60)
        queue.finish_items([finished(b, then=[(queue, Item(b"x", id="e"))])])
        queue.dead_letter(c)
        queue.complete(d, then=[(queue, Item(b"x", id="f"))])
        redis_client.config_resetstat()
    assert calls(redis_client) == 0
    assert [queue.inspect(name).state for name in "abcdef"] == [
        "absent",
        "absent",
        "dead",
        "absent",
        "ready",
        "ready",
    ]


def test_values_say_what_they_are(queue: Any) -> None:
    """LQ-SAFE-3: no data in a repr."""
    queue.add_item(Item(b"secret", id="a"))
    item = queue.lease(30)
    assert (
        repr(finished(item, result=b"secret", then=[(queue, Item(b"secret"))]))
        == "<Finished 'a', 1 follow-ups>"
    )
    assert repr(queue).startswith("<leaseq._")
    assert repr(queue).endswith("WorkQueue 'q'>")
