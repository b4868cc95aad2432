"""The kinds of queue that every sample call of a script is made on, built by the scripts themselves.

An id says what it is: r ready, f delayed, p due, c leased, e an expired lease, s an item that had a lease, x dead,
k completed, t a stale outcome, g damage. So one call can be made on all of them.
"""

from collections.abc import Callable

from support import script_lab
from support.script_lab import END_2059, HOUR_MS, NOW, START, Arg, Lab, key, record, state, tail

DAY_MS = 24 * HOUR_MS


def full(lab: Lab) -> None:
    """Items in every state; some are due, some leases have expired, some have leases of the past."""
    lab.lease_new("x1", HOUR_MS, "max_attempts", 1)
    lab.lease_new("s2", HOUR_MS)
    lab.lease_new("p3", HOUR_MS)
    lab.lease_new("s1", HOUR_MS)
    lab.lease_new("e1", 1000)
    lab.lease_new("e2", 2000, "max_attempts", 1)
    lab.lease_new("e3", 3000, "priority", 2)
    lab.lease_new("c1", 10 * HOUR_MS)
    lab.lease_new("c2", 10 * HOUR_MS, "priority", -7, "max_attempts", 1)
    assert lab.ok("release", 1, "x1", lab.tokens["x1"], 0, now=START) == b"dead"
    assert lab.ok("release", 1, "s2", lab.tokens["s2"], 1, "delay", 10 * HOUR_MS, now=START) == b"delayed"
    assert lab.ok("release", 1, "p3", lab.tokens["p3"], 1, "delay", 3000, now=START) == b"delayed"
    assert lab.ok("release", 1, "s1", lab.tokens["s1"], 0, now=START) == b"ready"
    items: list[list[Arg]] = [
        ["r1", "data of r1", 0],
        ["r2", b"\0\xff\r\n", 0],
        ["r3", "data of r3", 1, "priority", 3],
        ["r4", "", 1, "max_attempts", 2],
        ["f1", "data of f1", 1, "delay", 10 * HOUR_MS],
        ["p1", "data of p1", 1, "delay", 1000],
        ["p2", "data of p2", 3, "delay", 2000, "priority", -2, "max_attempts", 3],
    ]
    lab.ok("add", len(items), *(part for item in items for part in item), now=START)
    lab.client.delete(key("wake"))


def quiet(lab: Lab) -> None:
    """The same after a light clean: nothing is due, the bound is right."""
    full(lab)
    lab.ok("light_clean", 256)
    lab.client.delete(key("wake"))


def awake(lab: Lab) -> None:
    """The same with an element on wake."""
    quiet(lab)
    lab.client.lpush(key("wake"), "1")


def stale(lab: Lab) -> None:
    """Nothing is ready or due, and the bound lies in the past."""
    lab.lease_new("c1", 10 * HOUR_MS)
    lab.ok("add", 1, "p1", "", 1, "delay", 1000, now=START)
    lab.ok("add", 1, "f1", "", 1, "delay", 10 * HOUR_MS, now=START)
    lab.ok("remove", 1, "p1", now=START)
    lab.client.delete(key("wake"))


def stateless(lab: Lab) -> None:
    """The state is lost."""
    full(lab)
    lab.client.delete(key("state"))


def ghosts(lab: Lab) -> None:
    """All that is ready are ids without data; nothing is due."""
    stale(lab)
    lab.ok("light_clean", 256)
    lab.client.zadd(key("ready"), {"g1": 1, "r1": 2})
    lab.client.hset(key("meta"), "g1", record())
    lab.client.delete(key("wake"))


def crowded(lab: Lab) -> None:
    """More is due and expired than one lease sweeps; one of the first of each can be completed."""
    for letter in "pe":
        lab.lease_new(f"{letter}1", 1000, now=START)
    lab.ok("release", 1, "p1", lab.tokens["p1"], 1, "delay", 1000, now=START)
    ids = [f"p{n}" for n in range(2, 71)]
    lab.ok("add", 69, *(part for each in ids for part in (each, "", 1, "delay", 2000)), now=START)
    ids = [f"e{n}" for n in range(2, 71)]
    lab.ok("add", 69, *(part for each in ids for part in (each, "", 0)), now=START)
    reply = lab.ok("lease", 69, 2000, now=START)
    assert reply[2] == 69
    lab.lease_new("c1", 10 * HOUR_MS)
    lab.ok("add", 3, "r1", "", 0, "r2", "", 0, "r3", "", 0, now=START)
    lab.client.delete(key("wake"))


def rich(lab: Lab) -> None:
    """Items with options in every state, outcomes of those that are gone, and another queue with some of each."""
    lab.lease_new("k1", HOUR_MS, "keep", DAY_MS)
    lab.lease_new("k2", HOUR_MS, "keep", DAY_MS)
    lab.lease_new("t1", HOUR_MS, "header:a", "1")
    for item, keep in (("k1", 0), ("k2", 1000), ("t1", DAY_MS)):
        finish: list[Arg] = [item, lab.tokens[item], 2, "keep", keep, "result", f"result of {item}", 0]
        assert lab.ok("complete_with", 1, 0, *finish, now=START, more=[f"result:{item}"]) == [1]
    lab.lease_new("x1", HOUR_MS, "max_attempts", 1, "keep", DAY_MS, "header:a", "1")
    lab.lease_new("x2", HOUR_MS, "keep", DAY_MS, "content_type", "text/plain")
    lab.lease_new("x3", HOUR_MS)
    lab.lease_new("s2", HOUR_MS, "keep", DAY_MS, "header:a", "1")
    lab.lease_new("p3", HOUR_MS, "keep", DAY_MS)
    lab.lease_new("s1", HOUR_MS)
    lab.lease_new("e1", 1000, "expires_in", HOUR_MS, "header:a", "1", "header:b.c", "2")
    lab.lease_new("e2", 2000, "max_attempts", 1, "keep", DAY_MS, "content_type", "text/plain")
    lab.lease_new("e3", 3000, "priority", 2, "max_attempts", 0, "keep", DAY_MS)
    lab.lease_new("c1", 10 * HOUR_MS, "keep", DAY_MS, "header:a", "1", "expires_in", HOUR_MS)
    lab.lease_new("c2", 10 * HOUR_MS, "priority", -7, "max_attempts", 1, "content_type", "text/plain")
    releases: dict[str, list[Arg]] = {
        "x1": [1, "error", "why x1 failed"],
        "x2": [3, "error", "why x2 failed", "dead", 1, "keep", 0],
        "x3": [1, "dead", 1],
        "s2": [1, "delay", 10 * HOUR_MS],
        "p3": [2, "delay", 3000, "error", "why p3 waits"],
        "s1": [1, "error", "why s1 was given back"],
    }
    states = [
        lab.ok("release", 1, item, lab.tokens[item], *options, now=START, more=["result:x2"] * (item == "x2"))
        for item, options in releases.items()
    ]
    assert states == [b"dead", b"dead", b"dead", b"delayed", b"delayed", b"ready"]
    items: list[list[Arg]] = [
        ["r1", "data of r1", 2, "expires_in", 10 * HOUR_MS, "header:a", "1"],
        ["r2", b"\0\xff\r\n", 1, "expires_in", 1000],
        [
            *("r3", "data of r3", 5, "priority", 3, "expires_in", 1000, "expires_to", "dead"),
            *("keep", DAY_MS, "header:a", "1"),
        ],
        ["r4", "", 3, "max_attempts", 2, "keep", DAY_MS, "content_type", ""],
        ["r5", "data of r5", 2, "expires_in", 2000, "expires_to", "dead"],
        ["t1", "added once more", 0],
        ["f1", "data of f1", 3, "delay", 10 * HOUR_MS, "expires_in", 20 * HOUR_MS, "keep", DAY_MS],
        ["p1", "data of p1", 3, "delay", 1000, "expires_in", 2000, "header:a", "1"],
        ["p2", "data of p2", 4, "delay", 2000, "priority", -2, "max_attempts", 3, "header:a", "1"],
    ]
    lab.ok("add", len(items), *(part for item in items for part in item), now=START)
    mortal: list[Arg] = [3, "max_attempts", 1, "keep", DAY_MS, "header:a", "1"]
    lab.ok("add", 1, "o2", "data of o2", *mortal, now=START, on="other:")
    lab.ok("lease", 1, 1000, now=START, on="other:")
    items = [
        ["o1", "data of o1", 2, "header:a", "1", "keep", DAY_MS],
        ["o3", "data of o3", 1, "delay", 10 * HOUR_MS],
        ["o4", "data of o4", 2, "expires_in", 1000, "priority", 1],
    ]
    lab.ok("add", len(items), *(part for item in items for part in item), now=START, on="other:")
    lab.client.delete(key("wake"), key("other:wake"))


def spent(lab: Lab) -> None:
    """All that is ready has expired or waits in another queue, whose next time is near; nothing else is due."""
    lab.lease_new("c1", 10 * HOUR_MS, "keep", DAY_MS)
    items: list[list[Arg]] = [
        ["r2", "", 1, "expires_in", 1000],
        ["r5", "", 4, "expires_in", 2000, "expires_to", "dead", "keep", DAY_MS, "max_attempts", 3],
        ["f1", "", 1, "delay", 10 * HOUR_MS],
    ]
    lab.ok("add", 3, *(part for item in items for part in item), now=START)
    lab.ok("add", 1, "o3", "", 1, "delay", 3000, on="other:")
    lab.ok("add", 1, "o1", "", 0, on="other:")
    lab.client.delete(key("wake"), key("other:wake"))


def limited(lab: Lab) -> None:
    """Full by its own limit, with a limit of attempts that an expired lease has used up; the other queue is paused."""
    lab.lease_new("x1", HOUR_MS)
    lab.lease_new("e1", 1000)
    lab.lease_new("e2", 2000, "max_attempts", 0, "header:a", "1")
    lab.lease_new("c1", 10 * HOUR_MS)
    lab.lease_new("c2", 10 * HOUR_MS)
    limits: list[Arg] = ["max_data", 100, "max_items", 7, "max_attempts", 1]
    lab.ok("configure", 3, *limits, now=START)
    assert lab.ok("release", 1, "x1", lab.tokens["x1"], 0, now=START) == b"dead"
    lab.ok("add", 4, "r1", "", 0, "r2", "", 0, "r3", "", 1, "priority", 3, "f1", "", 0, now=START)
    lab.ok("configure", 2, "max_items", 1, "paused", 1, now=START, on="other:")
    lab.ok("add", 2, "o1", "", 0, "o2", "", 0, now=START, on="other:")
    lab.client.delete(key("wake"), key("room"), key("other:wake"), key("other:room"))


def roomy(lab: Lab) -> None:
    """Has a limit, room, and nobody was told of it."""
    quiet(lab)
    lab.ok("configure", 2, "max_items", 1000, "max_attempts", 2, now=START)
    lab.client.delete(key("wake"), key("room"))


def paused(lab: Lab) -> None:
    """The rich queue paused, with room that was told of."""
    rich(lab)
    lab.ok("configure", 2, "max_items", 1000, "paused", 1, now=START)
    lab.client.delete(key("wake"))


def damaged(lab: Lab) -> None:
    """Every kind of damage that deep clean knows."""
    full(lab)
    client = lab.client
    client.hset(key("items"), "u1", "in no state")
    client.hset(key("items"), "u2", "in no state, with a record")
    client.hset(key("meta"), "u2", record(options=1) + tail(5, 3))
    client.zadd(key("leased"), {"r1": NOW + 1_000_000})
    client.zadd(key("dead"), {"r1": NOW - 1_000_000, "r2": START, "g4": START})
    client.zadd(key("delayed"), {"r1": NOW - 1_000_000, "g2": START, "r2": START})
    client.zadd(key("ready"), {"g1": 1})
    client.zadd(key("leased"), {"g3": START, "c2": END_2059})
    client.hdel(key("meta"), "e1")
    client.hset(key("meta"), "g5", record())
    client.hset(key("items"), "f3", "")
    client.zadd(key("delayed"), {"f3": END_2059 - 1})
    client.hset(key("meta"), "f3", record() + b"surplus")
    client.hset(key("items"), "x2", "its token is ahead of the clock")
    client.hset(key("meta"), "x2", record(current=NOW + 1_000_000))
    client.zadd(key("dead"), {"x2": START})
    client.hset(key("items"), "f2", "")
    client.zadd(key("delayed"), {"f2": END_2059 - 1})
    client.hset(key("meta"), "f2", b"short")
    client.hset(key("items"), "r3", b"x" * 60)
    client.set(key("state"), state(next_due=NOW + 20 * HOUR_MS * 1000))
    client.hset(key("meta"), mapping={b"\0none": b"\0\0", b"\0r1": b"\0\0", b"\0r4": b"\0\0"})
    client.hset(key("meta"), "p1", record(options=3) + tail())
    client.hset(
        key("meta"), "p2", record(options=1, attempt=0, current=0) + tail(-2, expires=NOW + 1_000_000)
    )
    client.zadd(key("expiry"), {"f1": NOW + 1_000_000, "none": START, "p1": float("inf")})
    client.zadd(key("kept"), {"k1": float("inf"), "k2": NOW + 1_000_000})


QUEUES: dict[str, Callable[[Lab], None]] = {
    "empty": lambda lab: None,
    "full": full,
    "quiet": quiet,
    "awake": awake,
    "stale": stale,
    "stateless": stateless,
    "ghosts": ghosts,
    "crowded": crowded,
    "rich": rich,
    "spent": spent,
    "limited": limited,
    "roomy": roomy,
    "paused": paused,
    "damaged": damaged,
}


"""What each kind is called, and what builds it."""
script_lab.QUEUES.update(QUEUES)
