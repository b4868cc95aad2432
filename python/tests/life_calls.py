"""One call of every operation of an item's whole life: what it answers, what it does, what a second one answers.

The second is what a caller sends who lost the reply to the first. Each call has a queue of its own, so that several can
be prepared on one server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from colours import bare

from leaseq import Completed, Finished, Item, QueueFullError

if TYPE_CHECKING:
    from collections.abc import Callable

    from colours import Colour


class Scene:
    """A queue, the next one of its group, and the items that a call is about.

    `beyond` is the next queue as the client has it that was opened last: follow-ups go where the call goes.
    """

    def __init__(self, colour: Colour, name: str, server: Any) -> None:
        self._colour = colour
        self._name = name
        self.server = server
        self.queue: Any = self.open(server)
        self.next: Any = self.beyond
        self.held: list[Any] = []

    def open(self, server: Any) -> Any:
        """The queue as another client has it, which may be on the other side of a proxy."""
        self.beyond: Any = self._colour.queue(f"{self._name}-next", server, group=self._name)
        return self._colour.queue(self._name, server)

    def hold(self, *ids: str, **options: Any) -> None:
        """Add items and lease them."""
        self.queue.add_items([Item(b"x", id=each) for each in ids], **options)
        self.held += self.queue.lease_items(len(ids), 3600)

    def finish(self, item_id: str) -> None:
        """Add an item and complete it with a result."""
        self.hold(item_id, keep=60)
        self.queue.complete(self.held[0], result=b"r")

    def kill(self, *ids: str, **options: Any) -> None:
        """Add items that are dead."""
        self.hold(*ids, **options)
        self.queue.dead_letter_items(self.held, error="boom")

    def counts(self, *names: str) -> tuple[int, ...]:
        """Counters of the queue; one with `next.` is of the next queue."""
        found = []
        for name in names:
            queue, _, counter = name.rpartition(".")
            found.append(getattr((self.next if queue else self.queue).stats(), counter))
        return tuple(found)

    def outcome(self, item_id: str) -> tuple[str, bytes, float]:
        """What became of an item, and when: a second writing of it would have another time."""
        found = self.queue.outcome(item_id, block=False)
        return found.state, found.content, found.ended


@dataclass(frozen=True)
class Call:
    """A call: `run` is given the queue as its client has it. `counters` are those that it moves, to these values."""

    prepare: Callable[[Scene], object]
    run: Callable[[Any, Scene], object]
    answer: object
    again: object
    counters: dict[str, int]
    outcome: tuple[str, bytes] | None = None
    repeatable: bool = True
    """Whether a second call has no effect at all."""

    def check(self, scene: Scene) -> object:
        """What it has done, once: fails if it has not. Answers what must not change any more."""
        assert scene.counts(*self.counters) == tuple(self.counters.values())
        if self.outcome is None:
            return None
        *outcome, ended = scene.outcome("a")
        assert tuple(outcome) == self.outcome
        return ended


def follow_up(scene: Scene, item_id: str = "b") -> list[Any]:
    """A follow-up for the next queue."""
    return [(bare(scene.beyond), Item(b"y", id=item_id))]


def finished(scene: Scene, **options: Any) -> list[Finished]:
    """Each held item with a follow-up of its own."""
    return [
        Finished(bare(item), then=follow_up(scene, item.derived_id("next")), **options) for item in scene.held
    ]


def full(queue: Any, scene: Scene) -> object:
    """Add where there is no room."""
    try:
        return queue.add_items([Item(b"x", id="a"), Item(b"x", id="b")])
    except QueueFullError as error:
        return error.answers


def ids(items: list[Any]) -> list[str]:
    """Of leased items."""
    return [item.id for item in items]


CALLS: Final[dict[str, Call]] = {
    "add with every option": Call(
        lambda s: None,
        lambda q, s: q.add_item(
            Item(b"x", id="a", headers={"trace": "1"}, content_type="text/plain"),
            priority=3,
            max_attempts=2,
            expires_in=3600,
            dead_on_expiry=True,
            keep=60,
        ),
        answer=True,
        again=False,
        counters={"added": 1, "ready": 1},
    ),
    "add to a queue that becomes full": Call(
        lambda s: s.queue.configure(max_items=1),
        full,
        answer=[True, None],
        again=[False, None],
        counters={"added": 1, "items": 1},
    ),
    "add when there is room": Call(
        lambda s: s.queue.configure(max_items=1),
        lambda q, s: q.add_item_when_room(Item(b"x", id="a"), timeout=5),
        answer=True,
        again=False,
        counters={"added": 1, "items": 1},
    ),
    "complete what keeps its result": Call(
        lambda s: s.hold("a", keep=60),
        lambda q, s: q.complete(s.held[0], result=b"r"),
        answer=True,
        again=True,
        counters={"completed": 1, "items": 0, "kept": 1},
        outcome=("result", b"r"),
    ),
    "complete and keep the result": Call(
        lambda s: s.hold("a"),
        lambda q, s: q.complete(s.held[0], result=b"r", keep=60, only_current=True),
        answer=True,
        again=True,
        counters={"completed": 1, "items": 0, "kept": 1},
        outcome=("result", b"r"),
    ),
    "hand off": Call(
        lambda s: s.hold("a"),
        lambda q, s: q.complete(s.held[0], then=follow_up(s)),
        answer=Completed(completed=True, added=[True]),
        again=Completed(completed=False, added=[None]),
        counters={"completed": 1, "next.added": 1, "next.items": 1},
    ),
    "hand off and keep the result": Call(
        lambda s: s.hold("a"),
        lambda q, s: q.complete(s.held[0], result=b"r", keep=60, then=follow_up(s)),
        answer=Completed(completed=True, added=[True]),
        again=Completed(completed=True, added=[None]),
        counters={"completed": 1, "next.added": 1, "next.items": 1, "kept": 1},
        outcome=("result", b"r"),
    ),
    "finish several": Call(
        lambda s: s.hold("a", "b"),
        lambda q, s: q.finish_items(finished(s, keep=60)),
        answer=[Completed(completed=True, added=[True])] * 2,
        again=[Completed(completed=True, added=[None])] * 2,
        counters={"completed": 2, "next.added": 2, "next.items": 2, "kept": 2},
        outcome=("result", b""),
    ),
    "release with an error": Call(
        lambda s: s.hold("a", keep=60, max_attempts=2),
        lambda q, s: q.release(s.held[0], error="boom"),
        answer="ready",
        again="lost",
        counters={"released": 1, "ready": 1, "died": 0},
    ),
    "release for the last time": Call(
        lambda s: s.hold("a", keep=60, max_attempts=1),
        lambda q, s: q.release(s.held[0], error="boom"),
        answer="dead",
        again="lost",
        counters={"released": 1, "died": 1, "dead": 1, "kept": 1},
        outcome=("failure", b"boom"),
    ),
    "dead letter": Call(
        lambda s: s.hold("a", keep=60),
        lambda q, s: q.dead_letter(s.held[0], error="boom"),
        answer=True,
        again=False,
        counters={"died": 1, "dead": 1, "kept": 1},
        outcome=("failure", b"boom"),
    ),
    "revive": Call(
        lambda s: s.kill("a", keep=60),
        lambda q, s: q.revive("a"),
        answer=True,
        again=False,
        counters={"revived": 1, "ready": 1, "dead": 0, "kept": 0},
    ),
    "purge": Call(
        lambda s: s.kill("a", "b"),
        lambda q, s: q.purge("a"),
        answer=True,
        again=False,
        counters={"purged": 1, "items": 1, "dead": 1},
    ),
    "look at an outcome": Call(
        lambda s: s.finish("a"),
        lambda q, s: [each.content for each in q.outcomes(["a"])],
        answer=[b"r"],
        again=[b"r"],
        counters={"kept": 1},
        outcome=("result", b"r"),
    ),
    "pause": Call(
        lambda s: s.hold("a"),
        lambda q, s: q.pause(),
        answer=None,
        again=None,
        counters={"paused": 1},
    ),
    "resume": Call(
        lambda s: s.queue.pause(),
        lambda q, s: q.resume(),
        answer=None,
        again=None,
        counters={"paused": 0},
    ),
    "set limits": Call(
        lambda s: None,
        lambda q, s: q.configure(max_items=7, max_attempts=3),
        answer=None,
        again=None,
        counters={"max_items": 7, "max_attempts": 3},
    ),
    "lease what has headers": Call(
        lambda s: s.queue.add_items([Item(b"x", id=each, headers={"trace": each}) for each in "ab"]),
        lambda q, s: ids(q.lease_items(1, 3600, block=False)),
        answer=["a"],
        again=["b"],
        counters={"leases": 1, "leased": 1},
        repeatable=False,
    ),
}
