"""One queue on a server and the model of it, side by side, at a time that the test sets."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import redis

from leaseq import _scripts
from leaseq_conformance.model import invariants
from leaseq_conformance.model import keyspace as ks
from leaseq_conformance.model.base import RefusedError
from leaseq_conformance.model.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from leaseq_conformance.model.calls import Answer, Reply
    from leaseq_conformance.model.keyspace import Keyspace

START: Final = 1_767_225_600_000_000
SCRIPTS: Final = {script.name: script for script in _scripts.SCRIPTS}
SLOW_MS: Final = 600_000
"""No test takes this long: a time to live has not run down by more."""
# Takes the time off the end of ARGV and answers it to TIME. Times to live run by the server's own clock, so they are given
# as much more as no test takes. One line, so that line numbers in errors stay right.
PRELUDE: Final = (
    "local redis = (function(real) "
    "local s, us = string.match(table.remove(ARGV), '^(%d+)(%d%d%d%d%d%d)$') "
    "local function longer(f, c, k, ttl) return f(c, k, string.format('%.0f', ttl + "
    f"{SLOW_MS})) end "
    "local function via(f) return function(c, ...) if c == 'TIME' then return {s, us} end "
    "if c == 'PEXPIRE' then return longer(f, c, ...) end return f(c, ...) end end "
    "return setmetatable({call = via(real.call), pcall = via(real.pcall)}, {__index = real}) end)(redis) "
)


@cache
def _sha1(source: str) -> str:
    return hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()


@dataclass
class Clock:
    """The time of the queues that are driven together."""

    now: int = START


class ModelPair:
    """A queue on a server, `model`, and what was seen of it; in the group and at the time of the one `beside`."""

    def __init__(self, client: redis.Redis, name: str, beside: ModelPair | None = None) -> None:
        self.client = client
        self.group: str = beside.group if beside else name
        self.clock: Clock = beside.clock if beside else Clock()
        self.prefix = f"leaseq:{{{self.group}}}:{name}:"
        self.twin = f"leaseq:{{{self.group}}}:{name}-twin:"
        self.model = Queue()
        self.history: dict[bytes, list[int]] = defaultdict(list)
        self.published: set[bytes] = set()  # whose result keys a script was given
        self.waiters = 0  # that took a wake-up and have not called yet
        self.tolerated: set[str] = set()
        self.forget()

    @property
    def now(self) -> int:
        """The server's time."""
        return self.clock.now

    @now.setter
    def now(self, now: int) -> None:
        self.clock.now = now

    def forget(self) -> None:
        """Delete what is on the server."""
        results = ks.result_keys(self.prefix, self.published)
        self.client.delete(*ks.keys_of(self.prefix), *ks.keys_of(self.twin), *results)

    # Calls

    def keys(self, script: str, prefix: str = "") -> list[str | bytes]:
        """The keys of a call."""
        return [(prefix or self.prefix) + key for key in SCRIPTS[script].keys]

    def results(self, ids: Iterable[bytes]) -> list[bytes]:
        """The keys of the results of ids, looked at from now on."""
        ids = list(ids)
        self.published |= set(ids)
        return ks.result_keys(self.prefix, ids)

    def call(
        self,
        script: str,
        argv: Iterable[Answer | str],
        *,
        prefix: str = "",
        more: Iterable[str | bytes] = (),
    ) -> Any:
        """Run a script at the driver's time, with more keys behind its own; an error is its code, as text."""
        keys = [*self.keys(script, prefix), *more]
        source = PRELUDE + SCRIPTS[script].source
        words = (*keys, *argv, str(self.now))
        try:
            try:
                return self.client.evalsha(_sha1(source), len(keys), *words)
            except redis.exceptions.NoScriptError:
                return self.client.eval(source, len(keys), *words)
        except redis.ResponseError as error:
            return str(error).split(" ", 1)[0]

    def step(
        self,
        script: str,
        argv: Sequence[Answer | str],
        run: Callable[[Queue], Reply],
        more: Iterable[str | bytes] = (),
        order: Callable[[Any], Any] = lambda reply: reply,
    ) -> Any:
        """Call the script and the model; compare the replies, put in `order`, and everything stored."""
        try:
            expected: Reply | str = run(self.model)
        except RefusedError as refused:
            expected = str(refused)
        actual = self.call(script, argv, more=more)
        assert order(actual) == order(expected), (
            f"{script} {argv}: the script answers {actual!r}, the model {expected!r}"
        )
        self.check()
        return actual

    def stored(self) -> Keyspace:
        """Return what is on the server."""
        return ks.read(self.client, self.prefix, sorted(self.published))

    def check(self) -> Keyspace:
        """Compare what is stored, and check what must hold of it."""
        stored, expected = self.stored(), self.model.keyspace()
        assert stored == expected, f"stored against the model:\n{stored.difference(expected)}"
        for item_id, ttl in expected.ttls.items():
            left = stored.ttls[item_id]
            assert ttl < left <= ttl + SLOW_MS, (
                f"{item_id!r} has {left} ms to live and not {ttl} more than in life"
            )
        broken = [
            violation
            for violation in invariants.violations(stored, completed=self.model.finished)
            if not any(kind in violation for kind in self.tolerated)
        ]
        assert not broken, broken
        assert self.waiters or not invariants.unattended(stored), "items are ready and no waiter is woken"
        return stored

    # What is known of items and tokens

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

    def leased(self, reply: Any) -> int:
        """Keep the tokens of a reply of lease; how many there are."""
        if isinstance(reply, str):
            return 0
        for at in range(3, 3 + 4 * reply[2], 4):
            self.history[reply[at]].append(reply[at + 2])
        return int(reply[2])

    # Reaching into the keys

    def adopt(self, keyspace: Keyspace) -> None:
        """Take stored keys for the model's."""
        finished, ttls = self.model.finished, self.model.ttls
        self.model = Queue.load(keyspace)
        self.model.finished, self.model.ttls = finished, ttls
        self.check()

    def forge(self, change: Callable[[Keyspace], None]) -> Keyspace:
        """Change what is stored behind the scripts' back. The model does not follow."""
        stored = self.stored()
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

    def pop_room(self) -> bool:
        """A waiting producer's BLPOP, where it would not block."""
        popped = self.client.lpop(self.prefix + "room") is not None
        self.model.room -= popped
        return popped
