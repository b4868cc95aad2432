"""The calls of the reference model that look and change nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from leaseq_conformance.model.base import BUDGET, Base, check_id, limit_of, require, time_of
from leaseq_conformance.model.codec import place_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq_conformance.model.calls import Answer, Reply

LARGEST = 2**63 - 1024
"""The largest count that is reported: the last double that 64 bits hold."""
COUNTED = (
    *("promoted", "reclaimed", "released", "died", "expired"),
    *("revived", "purged", "removed", "dropped"),
)


def reported_count(count: int) -> int:
    """A count as a reply says it: none below 0, and beyond 2^53 the nearest double."""
    return max(0, min(int(float(count)), LARGEST))


class Inspections(Base):
    """Operations that read a queue."""

    def stats(self, now: int) -> Reply:
        """All numbers of the queue."""
        state = self._open(now)
        count = {name: reported_count(self.counters[name]) for name in COUNTED}
        sizes = Counter(item.where for item in self.items.values())
        ready = self._in("ready")
        gone = sum(count[name] for name in ("removed", "dropped", "expired", "purged"))
        numbers = {
            "now": now,
            "items": len(self.items),
            **{name: sizes[name] for name in ("ready", "delayed", "leased", "dead")},
            "kept": len(self.kept),
            "overdue": sum(item.score <= now for _, item in self._in("leased")),
            "due": sum(item.score <= now for _, item in self._in("delayed")),
            "waited": max(0, now - place_time(ready[0][1].score)) if ready else 0,
            "added": state.added,
            "leases": state.leases,
            "completed": max(0, state.added - len(self.items) - gone),
            **{name: count[name] for name in COUNTED},
            "largest": state.largest,
            "max_data": state.max_data or BUDGET,
            "max_items": state.max_items,
            "max_attempts": state.max_attempts,
            "paused": int(state.paused),
        }
        return [part for name, number in numbers.items() for part in (name.encode(), number)]

    def inspect(self, entries: Sequence[bytes]) -> Reply:
        """Eleven fields for each id."""
        state = self._state()
        reply: list[Answer] = []
        for item_id in entries:
            check_id(item_id)
            item = self.items.get(item_id)
            if item is None:
                reply += [b"absent", *[0] * 9, b""]
                continue
            created = item.created if item.recorded or item.where == "ready" else 0
            known = (item.attempt, item.token, created, len(item.data), item.priority, limit_of(state, item))
            error = item.extra.error if item.extra else b""
            reply += [item.where.encode(), time_of(item), *known, item.keep, item.expires, error]
        return reply

    def page(self, where: str, offset: int, limit: int, order: str) -> Reply:
        """A page of one state, or of what is kept."""
        require(1 <= limit <= 256)
        if where == "kept":
            found = sorted(self.kept.items(), key=lambda pair: (pair[1], pair[0]))
        else:
            found = [(item_id, time_of(item)) for item_id, item in self._in(where)]
        if order == "backward":
            found.reverse()
        page = found[offset : offset + limit]
        return [len(found), *(part for pair in page for part in pair)]
