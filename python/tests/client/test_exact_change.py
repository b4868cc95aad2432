"""Changes that are made only of items that are as they were seen; the connection goes back as it came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.client_flavours import unwrap

import leaseq
from leaseq import Item, commands
from leaseq._aio import exact_change as of_asyncio
from leaseq._sync import exact_change as of_threads

if TYPE_CHECKING:
    from support.client_flavours import ClientFlavour

    from leaseq.results import ItemInfo


def removed(flavour: ClientFlavour, queue: Any, choose: Any, state: str = "ready") -> Any:
    module: Any = of_asyncio if flavour.name == "asyncio" else of_threads
    own = unwrap(queue)
    return flavour.run(module.change_seen(own.executor, own.keys, state, ["a", "b"], choose, commands.remove))


def test_what_is_chosen_is_changed(flavour: ClientFlavour, queue: Any) -> None:
    queue.add_items([Item(b"x", id="a"), Item(b"xy", id="b")])
    seen, answers = removed(flavour, queue, lambda seen: [each.id for each in seen if each.size == 2])
    assert [each.id for each in seen] == ["a", "b"]
    assert answers == ["ready"]
    assert [info.state for info in queue.inspect_items(["a", "b"])] == ["ready", "absent"]


def test_a_change_between_the_look_and_the_act_makes_it_look_again(
    flavour: ClientFlavour, queue: Any, url: str
) -> None:
    queue.add_items([Item(b"x", id="a"), Item(b"xy", id="b")])
    sizes: list[list[int]] = []

    def choose(seen: list[ItemInfo]) -> list[str]:
        sizes.append([each.size for each in seen])
        if len(sizes) == 1:
            with leaseq.WorkQueue(unwrap(queue).name, url) as other:
                other.remove("a")
                other.add_item(Item(b"another", id="a"))
        return [each.id for each in seen if each.size == 1]

    assert removed(flavour, queue, choose)[1] == []
    assert sizes == [[1, 2], [7, 2]]
    assert queue.inspect("a").state == "ready"


@pytest.mark.parametrize("fails", [True, False])
def test_nothing_is_watched_when_the_connection_goes_back(
    flavour: ClientFlavour, queue: Any, url: str, fails: bool
) -> None:
    """Else the next transaction on it would be void, by a change that is none of its business."""
    queue.add_item(Item(b"x", id="a"))

    def choose(_: list[ItemInfo]) -> list[str]:
        if fails:
            raise RuntimeError
        return []

    if fails:
        with pytest.raises(RuntimeError):
            removed(flavour, queue, choose)
    else:
        assert removed(flavour, queue, choose)[1] == []
    with leaseq.WorkQueue(unwrap(queue).name, url) as other:
        other.remove("a")
    own = unwrap(queue)
    replies = flavour.run(own.executor.execute_all([("MULTI",), ("LLEN", own.keys.key("wake")), ("EXEC",)]))
    assert isinstance(replies[-1], list)


def test_an_error_of_the_change_is_raised(
    flavour: ClientFlavour, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.add_item(Item(b"x", id="a"))
    command = commands.remove(unwrap(queue).keys, ["a"])
    wrong = command._replace(arguments=("no number", "a"))
    monkeypatch.setattr(commands, "remove", lambda *_: wrong)
    with pytest.raises(leaseq.BadArgumentError):
        removed(flavour, queue, lambda _: ["a"])
    assert queue.inspect("a").state == "ready"
