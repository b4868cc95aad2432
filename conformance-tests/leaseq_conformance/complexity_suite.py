"""The suite `bounds`: what a script does is bounded, however long the queue (LQ-SCRIPT-5).

Each script is called on a queue and on one five times as long. Counted is not time but what the script gives to the server and
is given by it, in arguments and elements of replies.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import redis

from leaseq_conformance.cases import Case, Context
from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.model.codec import EPOCH, LEVEL, Record, State
from leaseq_conformance.vectors.executor import PREFIX, whole
from leaseq_conformance.vectors.vector import NOW, START
from leaseq_conformance.verdict import UnjudgedError, Verdict, failed, passed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HOUR: Final = 3_600_000
"""In milliseconds."""
SHORT_LENGTH: Final = 600
"""More than any call takes, and more than what servers pack into one block and read as a whole."""
LONG_LENGTH: Final = 5 * SHORT_LENGTH
MARGIN: Final = 1.5
"""A page of a scan may be a little longer than another."""
# One line, as vectors have it; beside answering TIME, it counts.
PRELUDE: Final = (
    "local work = 0 local redis = (function(real) "
    "local s, us = string.match(table.remove(ARGV), '^(%d+)(%d%d%d%d%d%d)$') "
    "local function size(v) if type(v) ~= 'table' then return 1 end local n = 1 for i = 1, #v do n = n + size(v[i]) end return n end "
    "local function via(f) return function(c, ...) if c == 'TIME' then return {s, us} end "
    "local reply = f(c, ...) work = work + select('#', ...) + size(reply) return reply end end "
    "return setmetatable({call = via(real.call), pcall = via(real.pcall)}, {__index = real}) end)(redis) "
    "local reply = (function() "
)
POSTLUDE: Final = "\nend)()\nreturn {work, reply}"
PLAIN: Final[Mapping[str, list[Any]]] = {
    "add": [1, "c1", "data", 0],
    "complete": [1, "c1", 5, 0],
    "complete_and_lease": [1, 1000, 1, "c1", 5, 0],
    "complete_with": [1, 0, "c1", 5, 0, 0],
    "configure": [1, "paused", 1],
    "deep_clean": ["0", 10, 0],
    "delete": [],
    "extend": [1, "c1", 5, 1000],
    "inspect": [1, "c1"],
    "lease": [1, 1000],
    "lease_any": [1, 1, 1000],
    "light_clean": [1],
    "list": ["ready", 0, 1, "forward"],
    "outcome": [1, "c1"],
    "purge": [0, 1, "c1"],
    "release": [1, "c1", 5, 0],
    "remove": [1, "c1"],
    "promote": [1, "c1"],
    "revive": [1, "c1"],
    "settle": [],
    "stats": [],
}
"""A call of each script."""
MORE_CALLS: Final[Mapping[str, list[list[Any]]]] = {
    "lease": [[256, HOUR]],
    "lease_any": [[1, 256, HOUR]],
    "complete_and_lease": [[256, HOUR, 1, "c1", 5, 0]],
    "light_clean": [[256]],
    "list": [["dead", 100, 256, "backward"]],
    "configure": [[1, "max_items", 7]],
}
"""Calls that take as much as one call may, beside the plain one of each script."""


def cases() -> Sequence[Case]:
    """One case, for every script."""
    return [
        Case(
            "bounds/every-script",
            f"No script does more on a queue of {LONG_LENGTH} items of each kind than on one of {SHORT_LENGTH}",
            ("LQ-SCRIPT-5",),
            (),
            {
                "short": SHORT_LENGTH,
                "long": LONG_LENGTH,
                "calls": {name: list(calls(name)) for name in SCRIPTS},
            },
        )
    ]


def calls(script: str) -> Iterator[list[Any]]:
    """The arguments of the calls that are made of a script."""
    yield PLAIN[script]
    yield from MORE_CALLS.get(script, [])


def run(case: Case, context: Context) -> Verdict:
    """Run the case."""
    return run_with(case, context)


def run_with(_case: Case, context: Context, sources: Mapping[str, str] = MappingProxyType({})) -> Verdict:
    """Run it with other sources of scripts, by their names: seeded bugs."""
    try:
        with context.server.client() as client:
            short, long = (_measured(client, size, sources) for size in (SHORT_LENGTH, LONG_LENGTH))
    except redis.ResponseError as error:
        raise UnjudgedError(f"a call that should be right was refused: {error}") from error
    lines = [f"{name}: {short[name]} and {long[name]}" for name in short]
    wrong = [line for line, name in zip(lines, short, strict=True) if long[name] > MARGIN * short[name]]
    if wrong:
        return failed(f"it does more on a queue that is five times as long: {wrong[0]}", lines)
    return passed(lines)


def _measured(client: redis.Redis, size: int, sources: Mapping[str, str]) -> dict[str, int]:
    """Return what each call does on a queue with `size` items of each kind; of a pass, the page that does most."""
    found = {}
    _fill(client, size)
    packed = {key: client.dump(key) for key in client.scan_iter(count=1000)}
    for script in SCRIPTS:
        digest = client.script_load(PRELUDE + sources.get(script, SCRIPTS[script].source) + POSTLUDE)
        for argv in calls(script):
            client.flushdb()
            for key, value in packed.items():
                client.restore(key, 0, value or b"")
            more = {"lease_any": SCRIPTS["lease"].keys, "outcome": ["result:c1"]}.get(script, ())
            keys = [whole(name) for name in (*SCRIPTS[script].keys, *more)]
            call_text = f"{script} {' '.join(map(str, argv))}"
            if script == "deep_clean":
                found[call_text] = max(_pass(client, digest, keys, argv))
            elif script == "delete":  # it refuses a queue of any length
                found[call_text] = 0
            else:
                found[call_text] = _call(client, digest, keys, argv)[0]
    client.flushdb()
    return found


def _call(client: redis.Redis, digest: Any, keys: Sequence[str], argv: Sequence[Any]) -> Any:
    return client.evalsha(str(digest), len(keys), *keys, *argv, str(NOW))


def _pass(client: redis.Redis, digest: Any, keys: Sequence[str], argv: Sequence[Any]) -> Iterator[int]:
    cursor, *rest = argv
    while True:
        work, reply = _call(client, digest, keys, [cursor, *rest])
        if isinstance(reply, redis.ResponseError):
            raise reply
        yield work
        cursor = reply[0]
        if cursor == b"0":
            return


def _fill(client: redis.Redis, size: int) -> None:
    """Store a queue with `size` items of each kind: ready, due, leased past the deadline, dead, expired; and old outcomes."""
    ids = {kind: [f"{kind}{number}" for number in range(size)] for kind in "rpexok"}
    place = float(START - EPOCH)
    ready = {name: place + at for at, name in enumerate(ids["r"])}
    # behind all others, so that who leases does not end them
    over = {name: place + 7 * LEVEL + at for at, name in enumerate(ids["o"])}
    times = {kind: {name: float(START + at) for at, name in enumerate(ids[kind])} for kind in "pexok"}
    leased = Record(1, START, START - 1).encode()
    records = dict.fromkeys([*ids["e"], *ids["x"]], leased) | {
        name: Record(0, 0, START - 1, priority=-7, expires=int(at)).encode()
        for name, at in times["o"].items()
    }
    records |= dict.fromkeys(ids["p"], Record(0, 0, START - 1).encode()) | {"c1": Record(1, 5, 4).encode()}
    held = [name for kind in "rpexo" for name in ids[kind]] + ["c1"]
    state = State(flags=2, clock=START + size, next_due=START, largest=4, added=len(held))
    with client.pipeline(transaction=False) as pipe:
        pipe.hset(PREFIX + "items", mapping=dict.fromkeys(held, "data"))
        pipe.hset(PREFIX + "meta", mapping=records)  # type: ignore[arg-type]  # bytes are fine
        pipe.zadd(PREFIX + "ready", ready | over)
        pipe.zadd(PREFIX + "delayed", times["p"])
        pipe.zadd(PREFIX + "leased", times["e"] | {"c1": float(NOW + HOUR * 1000)})
        pipe.zadd(PREFIX + "dead", times["x"])
        pipe.zadd(PREFIX + "expiry", times["o"])
        pipe.zadd(PREFIX + "kept", times["k"])
        pipe.set(PREFIX + "state", state.encode())
        pipe.execute()
