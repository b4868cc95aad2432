"""Calls on an item that has an extra, though its record says that it has none: that tells nothing (spec 8.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.model.calls import Release
from leaseq_conformance.model.codec import Extra
from leaseq_conformance.vectors.build import vector
from leaseq_conformance.vectors.builder import DAY, World
from leaseq_conformance.vectors.corners.making import lease_one
from leaseq_conformance.vectors.samples import ids, release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.vectors.samples import Sample
    from leaseq_conformance.vectors.vector import Dump, Vector

STRAY: Final = Extra(b"an error of another item", ((b"header:a", b"1"),))


def of(script: str) -> Iterator[Vector]:
    """These calls of a script."""
    world = World()
    world.leased(b"i1", keep=DAY)
    calls: dict[str, Sample] = {
        **{name: lease_one(name, 1) for name in ("lease", "lease_any", "complete_and_lease")},
        "inspect": ids("i1", "inspect", b"i1"),
        "outcome": ids("i1", "outcome", b"i1", timed=True),
        "release": release("error", Release(b"i1", world.token(b"i1"), error=b"why")),
    }
    if script != "release":
        world.give_back(b"i1", dead=script == "outcome")
    if script in calls:
        title = "an item whose record says nothing of its extra"
        yield vector(script, world.quiet(), "empty", calls[script], ("LQ-KEY-9",), title=title, change=_stray)


def _stray(dump: Dump) -> Dump:
    """Where the model has no extra, there is one of another item."""
    meta: Any = dump["meta"]
    return {**dump, "meta": {b"\0i1": STRAY.encode(), **meta}}
