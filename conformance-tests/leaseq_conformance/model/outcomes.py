"""The reference model's outcomes and dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leaseq_conformance.model.base import Base, bare, check_id, require, tick
from leaseq_conformance.model.codec import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq_conformance.model.calls import Answer, Reply
    from leaseq_conformance.model.codec import State

RESULT, FAILURE = 1, 2
CONTENTS: Final = 4_194_304
"""Bytes of contents after which a call returns no further outcome. The outcome that passes the limit is returned."""


class Outcomes(Base):
    """Operations on outcomes and on dead items."""

    def publish(self, state: State, now: int, item_id: bytes, ttl: int) -> None:
        """Keep the failure of a dead item."""
        item = self.items[item_id]
        error = item.extra.error if item.extra else b""
        outcome = Outcome(FAILURE, item.attempt, item.token, item.created, item.score, error)
        self._keep(state, now, item_id, outcome, ttl)

    def outcome(self, now: int, entries: Sequence[bytes]) -> Reply:
        """Return what became of items: six fields for each id, until their contents are too much for one call."""
        for item_id in entries:
            check_id(item_id)
        state = self._open(now)
        reply: list[Answer] = []
        size = 0
        for item_id in entries:
            if size > CONTENTS:
                break
            *fields, content = self._outcome(state, now, item_id)
            assert isinstance(content, bytes)
            reply += [*fields, content]
            size += len(content)
        return reply

    def _outcome(self, state: State, now: int, item_id: bytes) -> list[Answer]:
        item = self.items.get(item_id)
        known = self.results.get(item_id) if item_id in self.kept else None
        if item and not (item.where == "dead" and known and known.created == item.created):
            known = None
            self._forget(item_id)
            past = (now - item.score) // 1000
            left = min(item.keep, item.keep - past) if item.where == "dead" and item.keep else 0
            if left > 0:  # it is kept from the death on
                self.publish(state, now, item_id, left)
                known = self.results[item_id]
        if known:
            kind = b"result" if known.kind == RESULT else b"failure"
            keep = item.keep if item else 0
            return [kind, known.created, known.ended, known.attempt, keep, known.content]
        if item:
            created = item.created if item.recorded or item.where == "ready" else 0
            return [item.where.encode(), created, 0, item.attempt, item.keep, b""]
        self.results.pop(item_id, None)
        return [b"absent", 0, 0, 0, 0, b""]

    def _forget(self, item_id: bytes) -> None:
        """Take away what is left of an earlier item of the id."""
        self.results.pop(item_id, None)
        self.kept.pop(item_id, None)

    def revive(self, now: int, entries: Sequence[bytes]) -> Reply:
        """Make dead items ready again."""
        return self._make_ready(now, entries, "dead", "revived")

    def promote(self, now: int, entries: Sequence[bytes]) -> Reply:
        """Make delayed items ready now."""
        return self._make_ready(now, entries, "delayed", "promoted")

    def _make_ready(self, now: int, entries: Sequence[bytes], where: str, counter: str) -> Reply:
        for item_id in entries:
            check_id(item_id)
        state = self._open(now)
        answers: list[Answer] = []
        for item_id in entries:
            item = self.items.get(item_id)
            answers.append(int(item is not None and item.where == where))
            if item and answers[-1]:
                self._to_ready(item, tick(state, now))
                self.counters[counter] += 1
                if where == "dead":
                    item.attempt = 0
                    self.kept.pop(item_id, None)
        if any(answers):
            if where == "delayed":
                state.next_due = self.first_due()
            self.state = state
            if self._attended(state):
                self._wake()
        return bare(answers)

    def purge(self, now: int, older_than: int, entries: Sequence[bytes]) -> Reply:
        """Drop dead items."""
        require(0 <= older_than <= 315_360_000_000)
        for item_id in entries:
            check_id(item_id)
        self._open(now)
        answers: list[Answer] = []
        for item_id in entries:
            item = self.items.get(item_id)
            old = item is not None and item.where == "dead" and item.score <= now - older_than * 1000
            answers.append(int(old))
            if old:
                del self.items[item_id]
                self.counters["purged"] += 1
        return bare(answers)
