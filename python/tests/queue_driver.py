"""Drives the real scripts and the reference model side by side, at a time of its own, and compares after every call.

Each call's reply must be the model's, and afterwards everything stored must be what the model says is stored. The
driver also counts which cells of the table (state of the item, operation, kind of token) it has visited.
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

import keyspace as ks
import redis
from reference_calls import Add, Answer, Complete, Extend, Release, Reply
from reference_model import END, Queue, RefusedError
from reference_repair import PHASES, deep_clean

from leaseq import _scripts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from keyspace import Keyspace
    from reference_model import Item

START: Final = 1_767_225_600_000_000
SCRIPTS: Final = {script.name: script for script in _scripts.SCRIPTS}
# Takes the time off the end of ARGV and answers it to TIME; one line, so that line numbers in errors stay right.
PRELUDE: Final = (
    "local redis = (function(real) "
    "local s, us = string.match(table.remove(ARGV), '^(%d+)(%d%d%d%d%d%d)$') "
    "local function via(f) return function(c, ...) if c == 'TIME' then return {s, us} end return f(c, ...) end end "
    "return setmetatable({call = via(real.call), pcall = via(real.pcall)}, {__index = real}) end)(redis) "
)
# One step may move a bucket of one entry or pass ten empty ones, and a table is at most some times as wide as full.
FINISH_REHASHING: Final = """
local kind = redis.call('TYPE', KEYS[1]).ok
local count, look = ({hash = 'HLEN', zset = 'ZCARD'})[kind], ({hash = 'HEXISTS', zset = 'ZSCORE'})[kind]
for _ = 1, count and 4 * redis.call(count, KEYS[1]) + 64 or 0 do redis.call(look, KEYS[1], '') end
"""

Cell = tuple[str, str, str]
COVERAGE: Final[Counter[Cell]] = Counter()
"""Visits of (state, operation, kind of token), over everything this process drove."""
STATES: Final = ("absent", "delayed", "ready", "leased", "expired", "dead")
TOKENS: Final = ("none", "current", "superseded", "previous")
WITH_TOKEN: Final = (
    *("complete", "complete only_current", "complete_and_lease", "extend"),
    *("release", "release delay", "release uncounted"),
)
WITHOUT_TOKEN: Final = (
    *("add", "add delay", "remove", "inspect"),
    *("lease", "light_clean", "deep_clean", "stats", "list", "settle", "configure"),
)


def every_cell() -> set[Cell]:
    """The cells that exist: of an absent item, only a token of a previous one or none can be had."""
    cells = {(state, name, "none") for state in STATES for name in WITHOUT_TOKEN}
    for name in WITH_TOKEN:
        cells |= {(state, name, token) for state in STATES for token in TOKENS}
        cells -= {("absent", name, "current"), ("absent", name, "superseded")}
    return cells


class QueueDriver:
    """One queue on a server, and the model of it."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        self.client = client
        self.prefix = f"leaseq:{{{name}}}:{name}:"
        self.twin = f"leaseq:{{{name}}}:{name}-twin:"
        self.shas = {script.name: client.script_load(PRELUDE + script.source) for script in SCRIPTS.values()}
        self.model = Queue()
        self.now = START
        self.history: dict[bytes, list[int]] = defaultdict(list)
        self.completed = 0
        self.waiters = 0  # that took a wake-up and have not called yet
        self.tolerated: set[str] = set()
        self.forget()

    def forget(self) -> None:
        """Delete what is on the server."""
        self.client.delete(*ks.keys_of(self.prefix), *ks.keys_of(self.twin))

    # Calls

    def call(self, script: str, argv: Iterable[Answer | str], *, prefix: str = "") -> Any:
        """Run a script at the driver's time; an error is its code, as text."""
        keys = [(prefix or self.prefix) + key for key in SCRIPTS[script].keys]
        try:
            return self.client.evalsha(self.shas[script], len(keys), *keys, *argv, str(self.now))
        except redis.ResponseError as error:
            return str(error).split(" ", 1)[0]

    def step(self, script: str, argv: Sequence[Answer | str], run: Callable[[Queue], Reply]) -> Any:
        """Call the script and the model; compare the replies and everything stored."""
        try:
            expected: Reply | str = run(self.model)
        except RefusedError as refused:
            expected = str(refused)
        actual = self.call(script, argv)
        assert actual == expected, f"{script} {argv}: the script answers {actual!r}, the model {expected!r}"
        self.check()
        return actual

    def check(self) -> Keyspace:
        """Compare what is stored, and check what must hold of it."""
        stored, expected = ks.read(self.client, self.prefix), self.model.keyspace()
        assert stored == expected, f"stored against the model:\n{stored.difference(expected)}"
        broken = [
            violation
            for violation in ks.violations(stored, completed=self.completed)
            if not any(kind in violation for kind in self.tolerated)
        ]
        assert not broken, broken
        assert self.waiters or not ks.unattended(stored), "items are ready and nobody is woken"
        return stored

    def where(self, item_id: bytes) -> str:
        """The state of an item in the table."""
        item = self.model.items.get(item_id)
        if item is None:
            return "absent"
        return "expired" if item.where == "leased" and item.score <= self.now else item.where

    def kind_of(self, item_id: bytes, token: int) -> str:
        """The kind of a token in the table."""
        item = self.model.items.get(item_id)
        if item and item.had(token):
            return "current" if token == item.token else "superseded"
        return "previous" if token in self.history[item_id] else "none"

    def token(self, item_id: bytes, kind: str) -> int:
        """A token of that kind; where there is none, the latest of the id, or 0."""
        if kind == "future":
            return (self.model.state.clock if self.model.state else 0) + 5
        had = [token for token in self.history[item_id] if self.kind_of(item_id, token) == kind]
        if kind != "none" and not had:
            had = self.history[item_id]
        return had[-1] if had else 0

    def visit(self, name: str, pairs: Iterable[tuple[bytes, int]]) -> None:
        """Count the cells of a call on these ids and tokens."""
        COVERAGE.update((self.where(item_id), name, self.kind_of(item_id, token)) for item_id, token in pairs)

    def visit_all(self, name: str) -> None:
        """Count the cells of a call on the queue as a whole."""
        COVERAGE.update({(self.where(item_id), name, "none") for item_id in self.model.items or [b""]})

    # Operations, each with its cells

    def add(self, *entries: Add) -> Any:
        """Add."""
        for entry in entries:
            timed = entry.delay is not None or entry.not_before is not None
            self.visit("add delay" if timed else "add", [(entry.id, 0)])
        argv = [len(entries), *(part for entry in entries for part in entry.argv())]
        return self.step("add", argv, lambda model: model.add(self.now, entries))

    def _leased(self, reply: Any) -> int:
        """Keep the tokens of a reply of lease; how many there are."""
        if isinstance(reply, str):
            return 0
        for at in range(3, 3 + 4 * reply[2], 4):
            self.history[reply[at]].append(reply[at + 2])
        return int(reply[2])

    def lease(self, count: int = 1, duration: int = 30_000) -> Any:
        """Lease."""
        self.visit_all("lease")
        reply = self.step("lease", [count, duration], lambda model: model.lease(self.now, count, duration))
        self._leased(reply)
        return reply

    def complete(self, *entries: Complete) -> Any:
        """Complete."""
        for entry in entries:
            name = "complete only_current" if entry.only_current else "complete"
            self.visit(name, [(entry.id, entry.token)])
        argv = [len(entries), *(part for entry in entries for part in entry.argv())]
        self.completed += self._would_complete(entries)
        return self.step("complete", argv, lambda model: model.complete(entries))

    def _would_complete(self, entries: Sequence[Complete]) -> int:
        try:
            answers = Queue(copy.deepcopy(self.model.items)).complete(entries)
        except RefusedError:
            return 0
        return answers.count(1) if isinstance(answers, list) else int(answers == 1)

    def complete_and_lease(self, count: int, duration: int, *entries: Complete) -> Any:
        """Complete, then lease."""
        self.visit("complete_and_lease", [(entry.id, entry.token) for entry in entries])
        argv = [count, duration, len(entries), *(part for entry in entries for part in entry.argv())]
        if _scripts_time_ok(self.now):
            self.completed += self._would_complete(entries)
        reply = self.step(
            "complete_and_lease",
            argv,
            lambda model: model.complete_and_lease(self.now, count, duration, entries),
        )
        self._leased(reply)
        return reply

    def extend(self, *entries: Extend) -> Any:
        """Extend."""
        self.visit("extend", [(entry.id, entry.token) for entry in entries])
        argv = [len(entries), *(part for entry in entries for part in entry.argv())]
        return self.step("extend", argv, lambda model: model.extend(self.now, entries))

    def release(self, *entries: Release) -> Any:
        """Release."""
        for entry in entries:
            name = "release uncounted" if entry.uncounted else "release delay" if entry.delay else "release"
            self.visit(name, [(entry.id, entry.token)])
        argv = [len(entries), *(part for entry in entries for part in entry.argv())]
        return self.step("release", argv, lambda model: model.release(self.now, entries))

    def remove(self, *ids: bytes) -> Any:
        """Remove."""
        self.visit("remove", [(item_id, 0) for item_id in ids])
        return self.step("remove", [len(ids), *ids], lambda model: model.remove(ids))

    def inspect(self, *ids: bytes) -> Any:
        """Inspect."""
        self.visit("inspect", [(item_id, 0) for item_id in ids])
        return self.step("inspect", [len(ids), *ids], lambda model: model.inspect(ids))

    def page(self, where: str, offset: int = 0, limit: int = 256, order: str = "forward") -> Any:
        """List one state."""
        self.visit_all("list")
        argv: Sequence[Answer | str] = [where, offset, limit, order]
        return self.step("list", argv, lambda model: model.page(where, offset, limit, order))

    def stats(self) -> Any:
        """Count."""
        self.visit_all("stats")
        return self.step("stats", [], lambda model: model.stats(self.now))

    def settle(self) -> Any:
        """Settle."""
        self.visit_all("settle")
        return self.step("settle", [], lambda model: model.settle(self.now))

    def light_clean(self, limit: int = 256) -> Any:
        """Promote and reclaim."""
        self.visit_all("light_clean")
        return self.step("light_clean", [limit], lambda model: model.light_clean(self.now, limit))

    def configure(self, max_data: int) -> Any:
        """Set the limit of data."""
        self.visit_all("configure")
        argv: Sequence[Answer | str] = [1, "max_data", max_data]
        return self.step("configure", argv, lambda model: model.configure(max_data))

    def deep_clean(self, limit: int = 100, *, strict: bool = True) -> Counter[str]:
        """One pass; before each page the same page dry, which must tell the same and write nothing.

        What a page looks at is the server's choice, so the driver scans like the script. With `strict` the queue must
        be sound afterwards.
        """
        self.visit_all("deep_clean")
        found: Counter[str] = Counter()
        cursor = b"0"
        expected = ks.read(self.client, self.prefix)
        while True:
            phase, _, at = (b"1:0" if cursor == b"0" else cursor).partition(b":")
            key = PHASES[int(phase) - 1]
            self._finish_rehashing(key)
            following, page = self._scan(key, int(at), limit)
            before = copy.deepcopy(expected)
            counts = deep_clean(expected, self.now, key, page)
            done = phase if following else str(int(phase) + 1).encode()
            cursor_then = done + b":%d" % following if done != b"7" else b"0"
            reply = [
                cursor_then,
                *(part for kind, count in counts.items() for part in (kind.encode(), count)),
            ]
            for dry_run, then in ((1, before), (0, expected)):
                actual = self.call("deep_clean", [cursor, limit, dry_run])
                assert actual == reply, f"dry_run {dry_run}, {key}: answers {actual!r}, the model {reply!r}"
                stored = ks.read(self.client, self.prefix)
                assert stored == then, (
                    f"dry_run {dry_run}, {key}: stored against the model:\n{stored.difference(then)}"
                )
            found.update(counts)
            cursor = cursor_then
            if cursor == b"0":
                break
        if strict:
            self.adopt(expected)
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

    # Reaching into the keys

    def adopt(self, keyspace: Keyspace) -> None:
        """Take stored keys for the model's."""
        self.model = Queue.load(keyspace)
        self.check()

    def forge(self, change: Callable[[Keyspace], None]) -> Keyspace:
        """Change what is stored behind the scripts' back. The model does not follow by itself."""
        stored = ks.read(self.client, self.prefix)
        change(stored)
        ks.write(self.client, self.prefix, stored)
        return stored

    def pop_wake(self) -> bool:
        """A waiter's BLPOP, where it would not block."""
        popped = self.client.lpop(self.prefix + "wake") is not None
        if popped:
            self.model.wake -= 1
            self.waiters += 1
        return popped

    def drain(self) -> None:
        """Complete everything that is not dead by leasing it, however long it takes: nothing may be lost or stuck."""
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


def _scripts_time_ok(now: int) -> bool:
    return ks.EPOCH <= now < END
