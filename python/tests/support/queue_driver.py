"""Drives the real scripts and the reference model side by side, at a time that the test sets, and compares after every call.

Each call's reply must be the model's, and afterwards everything stored must be what the model says is stored.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from support.model_pair import SCRIPTS, START, ModelPair

from leaseq_conformance.manifest import REPAIRS
from leaseq_conformance.model import multi_queue
from leaseq_conformance.model.calls import Add, Answer, Complete, Extend, Finish, Release
from leaseq_conformance.model.deep_clean import PHASES, deep_clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq_conformance.model.base import Item

__all__ = ["SCRIPTS", "START", "QueueDriver"]

TARGET_KEYS: Final = ("items", "meta", "ready", "delayed", "dead", "expiry", "kept", "state", "wake")
LEASE_KEYS: Final = tuple(SCRIPTS["lease"].keys)
# One step may move a bucket of one entry or pass ten empty ones, and a table is at most some times as wide as full.
FINISH_REHASHING: Final = """
local kind = redis.call('TYPE', KEYS[1]).ok
local count, look = ({hash = 'HLEN', zset = 'ZCARD'})[kind], ({hash = 'HEXISTS', zset = 'ZSCORE'})[kind]
for _ = 1, count and 4 * redis.call(count, KEYS[1]) + 64 or 0 do redis.call(look, KEYS[1], '') end
"""


def in_order(start: int, answers: int = 0) -> Any:
    """Sort what a reply of lease has after its items: their order is not specified.

    `start` is the place of the reply of lease, `answers` the number of elements after it.
    """

    def order(reply: Any) -> Any:
        if isinstance(reply, str):
            return reply
        end = len(reply) - answers
        at = start + 3 + 4 * reply[start + 2]
        deaths = [tuple(reply[n : n + 3]) for n in range(at, end, 3)]
        return reply[:at], sorted(deaths), reply[end:]

    return order


class QueueDriver(ModelPair):
    """One queue on a server, and the model of it."""

    def add(self, *entries: Add) -> Any:
        """Add."""
        return self.step("add", _argv(entries), lambda model: model.add(self.now, entries))

    def lease(self, count: int = 1, duration: int = 30_000) -> Any:
        """Lease."""
        reply = self.step(
            "lease",
            [count, duration],
            lambda model: model.lease(self.now, count, duration),
            order=in_order(0),
        )
        self.leased(reply)
        return reply

    def complete(self, *entries: Complete) -> Any:
        """Complete."""
        return self.step("complete", _argv(entries), lambda model: model.complete(entries))

    def complete_and_lease(self, count: int, duration: int, *entries: Complete) -> Any:
        """Complete, then lease."""
        reply = self.step(
            "complete_and_lease",
            [count, duration, *_argv(entries)],
            lambda model: model.complete_and_lease(self.now, count, duration, entries),
            order=in_order(0, len(entries)),
        )
        self.leased(reply)
        return reply

    def complete_with(self, *entries: Finish, targets: Sequence[QueueDriver] = ()) -> Any:
        """Complete, keep results, add follow-ups to the queues `targets`."""
        keys: list[str | bytes] = [target.prefix + key for target in targets for key in TARGET_KEYS]
        keys += self.results(entry.id for entry in entries if entry.keep is not None)
        count, *rest = _argv(entries)
        models = [target.model for target in targets]
        reply = self.step(
            "complete_with",
            [count, len(targets), *rest],
            lambda model: multi_queue.complete_with(self.now, model, models, entries),
            keys,
        )
        for target in targets:
            target.check()
        return reply

    def extend(self, *entries: Extend) -> Any:
        """Extend."""
        return self.step("extend", _argv(entries), lambda model: model.extend(self.now, entries))

    def release(self, *entries: Release) -> Any:
        """Release."""
        keys = self.results(entry.id for entry in entries if entry.keep is not None)
        return self.step("release", _argv(entries), lambda model: model.release(self.now, entries), keys)

    def remove(self, *ids: bytes) -> Any:
        """Remove."""
        return self.step("remove", [len(ids), *ids], lambda model: model.remove(ids))

    def promote(self, *ids: bytes) -> Any:
        """Promote."""
        return self.step("promote", [len(ids), *ids], lambda model: model.promote(self.now, ids))

    def revive(self, *ids: bytes) -> Any:
        """Revive."""
        return self.step("revive", [len(ids), *ids], lambda model: model.revive(self.now, ids))

    def purge(self, *ids: bytes, older_than: int = 0) -> Any:
        """Purge."""
        argv: list[Answer | str] = [older_than, len(ids), *ids]
        return self.step("purge", argv, lambda model: model.purge(self.now, older_than, ids))

    def outcome(self, *ids: bytes) -> Any:
        """Ask what became of items."""
        keys = self.results(ids)
        return self.step("outcome", [len(ids), *ids], lambda model: model.outcome(self.now, ids), keys)

    def lease_any(self, *others: QueueDriver, count: int = 1, duration: int = 30_000) -> Any:
        """Lease from this queue or one behind it."""
        queues = (self, *others)
        reply = self.step(
            "lease_any",
            [len(queues), count, duration],
            lambda _: multi_queue.lease_any(self.now, [each.model for each in queues], count, duration),
            [queue.prefix + key for queue in queues for key in LEASE_KEYS],
            order=in_order(1),
        )
        if not isinstance(reply, str):
            for number, queue in enumerate(queues, 1):
                queue.check()
                if number == reply[0]:
                    queue.leased(reply[1:])
        return reply

    def inspect(self, *ids: bytes) -> Any:
        """Inspect."""
        return self.step("inspect", [len(ids), *ids], lambda model: model.inspect(ids))

    def page(self, where: str, offset: int = 0, limit: int = 256, order: str = "forward") -> Any:
        """List one state."""
        argv: Sequence[Answer | str] = [where, offset, limit, order]
        return self.step("list", argv, lambda model: model.page(where, offset, limit, order))

    def stats(self) -> Any:
        """Count."""
        return self.step("stats", [], lambda model: model.stats(self.now))

    def settle(self) -> Any:
        """Settle."""
        return self.step("settle", [], lambda model: model.settle(self.now))

    def light_clean(self, limit: int = 256) -> Any:
        """Promote and reclaim."""
        return self.step("light_clean", [limit], lambda model: model.light_clean(self.now, limit))

    def configure(self, **values: int) -> Any:
        """Set limits, pause (paused=1), resume (paused=0)."""
        argv: list[Answer | str] = [
            len(values),
            *(part for name, value in values.items() for part in (name, value)),
        ]
        return self.step("configure", argv, lambda model: model.configure(**values))

    def deep_clean(self, limit: int = 100, *, strict: bool = True) -> Counter[str]:
        """One pass; before each page the same page dry, which must tell the same and write nothing.

        What a page looks at is the server's choice, so the driver scans like the script. With `strict` the queue must
        be sound afterwards.
        """
        found: Counter[str] = Counter()
        cursor = b"0"
        expected = self.stored()
        while True:
            phase, _, at = (b"1:0" if cursor == b"0" else cursor).partition(b":")
            key = PHASES[int(phase) - 1]
            self._finish_rehashing(key)
            following, page = self._scan(key, int(at), limit)
            before = copy.deepcopy(expected)
            counts = deep_clean(expected, self.now, key, page)
            done = phase if following else str(int(phase) + 1).encode()
            cursor_then = done + b":%d" % following if int(done) <= len(PHASES) else b"0"
            reply = [
                cursor_then,
                *(part for kind in REPAIRS for part in (kind.encode(), counts[kind])),
            ]
            for dry_run, then in ((1, before), (0, expected)):
                actual = self.call("deep_clean", [cursor, limit, dry_run])
                assert actual == reply, f"dry_run {dry_run}, {key}: answers {actual!r}, the model {reply!r}"
                stored = self.stored()
                assert stored == then, (
                    f"dry_run {dry_run}, {key}: stored against the model:\n{stored.difference(then)}"
                )
            found.update(counts)
            cursor = cursor_then
            if cursor == b"0":
                break
        if strict:
            self.adopt(self.stored())
        return +found

    def _finish_rehashing(self, key: str) -> None:
        """While the server moves a table on, by a step with each look into it, two equal scans differ.

        A script that scans a page also looks at each of its ids, so the driver's scan and the two runs would each
        meet another table; a table at rest is cut into the same pages by all of them.
        """
        self.client.eval(FINISH_REHASHING, 1, self.prefix + key)

    def _scan(self, key: str, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        command = "HSCAN" if key in {"items", "meta"} else "ZSCAN"
        reply: Any = self.client.execute_command(command, self.prefix + key, cursor, "COUNT", limit)  # type: ignore[no-untyped-call]
        return int(reply[0]), [each[0] if isinstance(each, tuple) else each for each in reply[1]]

    def drain(self) -> None:
        """Complete everything that is not dead by leasing it, however long it takes: nothing may be lost or stuck."""
        if self.model.state and self.model.state.paused:
            self.configure(paused=0)
        for _ in range(3 * len(self.model.items) + 3):
            reply = self.lease(256, 60_000)
            for at in range(3, 3 + 4 * reply[2], 4):
                assert self.complete(Complete(reply[at], reply[at + 2])) == 1
            if not reply[2]:
                if reply[0] < 0:
                    break
                self.now += reply[0]
        left: list[Item] = [item for item in self.model.items.values() if item.where != "dead"]
        assert not left, left


def _argv(entries: Sequence[Add | Complete | Extend | Finish | Release]) -> list[Answer]:
    return [len(entries), *(part for entry in entries for part in entry.argv())]
