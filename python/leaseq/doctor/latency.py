"""Speed: how far away the server is, and whether scripts take long in it.

A machine that stalls makes a good server look slow for a moment, and never a slow one look fast: the quickest of many
tries counts, and the mean of many calls.
"""

import statistics
import time

from leaseq import _scripts
from leaseq.doctor.finding import Verdict, advice, ok, problem
from leaseq.doctor.node import Node

PINGS = 50

HIGH_LATENCY_MS = 5.0
"""Beyond this, one item at a time means at most about a hundred items a second for a worker."""

EXTREME_LATENCY_MS = 200.0
"""Heartbeats and waits reckon with a server that answers sooner."""

SLOW_MS = 2.0
"""The most that a script with full batches of small items takes; one item takes about 0.03 ms."""

ENOUGH_CALLS = 100
"""Of fewer calls the mean says little."""

SLOW_SCRIPT_MS = 100.0
"""A script that takes this long delays all other clients."""

LATEST = 128
"""Entries of the slow log to look at."""


def latency(node: Node) -> Verdict:
    """The time that a call takes on its way: each of a worker's calls waits for it."""
    took = sorted(_ping(node) for _ in range(PINGS))
    best, middle = took[0] * 1000, statistics.median(took) * 1000
    found = f"{best:.2f} ms at best, {middle:.2f} ms in the middle of {PINGS}"
    if best > EXTREME_LATENCY_MS:
        return problem(found, "run workers near the server")
    if best > HIGH_LATENCY_MS:
        return advice(found, "lease and complete several items in one call (lease_items, complete_items)")
    return ok(found)


def _ping(node: Node) -> float:
    start = time.perf_counter()
    node.execute("PING")
    return time.perf_counter() - start


def slow_scripts(node: Node) -> Verdict:
    """A script that takes long keeps everybody else waiting: full batches of large items, or a slow machine."""
    # `commandstats` counts all scripts of the server, the slow log tells which they are
    evalsha = node.info("commandstats").get("cmdstat_evalsha", {})
    calls, mean = int(evalsha.get("calls", 0)), float(evalsha.get("usec_per_call", 0)) / 1000
    slow = _slow_scripts(node)
    if calls >= ENOUGH_CALLS and mean > SLOW_MS:
        return problem(
            f"{calls} scripts took {mean:.1f} ms each on average{', such as ' + slow if slow else ''}",
            "look at SLOWLOG GET for what they are; keep data small (a reference instead of the content), lease fewer"
            " items at once, and see that the machine does not swap",
        )
    if slow:
        return advice(
            f"scripts took long: {slow}; {mean:.2f} ms on average",
            "nothing if that was once; else keep data small and lease fewer items at once. SLOWLOG RESET clears it",
        )
    return ok(f"{calls} scripts, {mean:.2f} ms each on average" if calls else "no scripts have run yet")


def _slow_scripts(node: Node) -> str:
    """Return leaseq's scripts in the slow log that took long, such as "lease 120 ms"."""
    names = {script.sha1: script.name for script in _scripts.SCRIPTS}
    worst: dict[str, float] = {}
    for entry in node.execute("SLOWLOG", "GET", LATEST):
        words = entry["command"].split(" ") if isinstance(entry, dict) else entry[3]
        name = names.get(words[1]) if len(words) > 1 else None
        took = float(entry["duration"] if isinstance(entry, dict) else entry[2]) / 1000
        if name is not None and took > SLOW_SCRIPT_MS:
            worst[name] = max(worst.get(name, 0.0), took)
    return ", ".join(f"{name} {took:.0f} ms" for name, took in sorted(worst.items()))
