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


@pytest.mark.parametrize("together", [False, True])
def test_a_queue_on_another_server(
    flavour: ClientFlavour, own_server: servers.StartServer, url: str, *, together: bool
) -> None:
    """LQ-CLIENT-9: the call would put the follow-up on the first queue's server, where no client looks for it."""
    first = flavour.queue("first", url)
    elsewhere = flavour.queue("second", own_server().url, group="first")
    first.add_item(Item(b"x", id="a"))
    item = first.lease(30)
    assert item is not None
    then = [(elsewhere, Item(b"x"))]

    def complete() -> object:
        if together:
            return first.complete_items([finished(item, then=then)])
        return first.complete(item, then=then)

    with pytest.raises(leaseq.CrossGroupError, match="another server or database") as caught:
        complete()
    assert caught.value.definite
    assert first.inspect("a").state == "leased"


def test_a_queue_on_another_database(flavour: ClientFlavour, url: str) -> None:
    """LQ-CLIENT-9: the follow-up would be in a database in which no client looks for it."""
    first = flavour.queue("first", url)
    elsewhere = flavour.queue("second", f"{url.rpartition('/')[0]}/1", group="first")
    first.add_item(Item(b"x", id="a"))
    item = first.lease(30)
    assert item is not None
    with pytest.raises(leaseq.CrossGroupError, match="another server or database"):
        first.complete(item, then=[(elsewhere, Item(b"x"))])
    assert first.inspect("a").state == "leased"


def test_a_finished_item_in_a_block_is_left_alone(queue: Any, redis_client: redis.Redis) -> None:
    """LQ-COMPLETE-2: whatever call of the block ended it, the end of the block sends nothing."""
    queue.add_items([Item(b"x", id=name) for name in "abcd"])
    a, b, c, d = queue.lease_items(4, 30)
    with a, b, c, d:
        queue.complete(a, result=b"x", keep=60)
        queue.complete_items([finished(b, then=[(queue, Item(b"x", id="e"))])])
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
        == "<Completion 'a', 1 follow-ups>"
    )
    assert repr(queue).startswith("<leaseq._")
    assert repr(queue).endswith("WorkQueue 'q'>")
