"""Clocks: the server's, which decides everything, against this machine's and against what it has said before."""

import time

from leaseq.doctor.finding import Verdict, advice, ok, problem, unknown
from leaseq.doctor.node import Node

STEP_SECS = 1.0
"""Two clocks that NTP keeps are closer than this by far."""

CLIENT_SECS = 5.0
"""Seconds that this machine's clock may differ by: it enters nothing but `not_before`."""

EARLIEST = 1735689600.0  # 2025-01-01
LATEST = 2840140800.0  # 2060-01-01
SAMPLES = 10


def offset(node: Node) -> tuple[float, float]:
    """Return how far the server's clock is ahead of this machine's, and by how much that may be wrong, in seconds.

    Of several looks the quickest counts: a stall makes a look slower and never makes two clocks differ.
    """
    samples = []
    for _ in range(SAMPLES):
        began = time.time()
        start = time.monotonic()
        there = node.time()
        took = time.monotonic() - start
        samples.append((took / 2, there - (began + took / 2)))
    unsure, ahead = min(samples)
    return ahead, unsure


def clock(node: Node) -> Verdict:
    """Deadlines and due times are the server's; a client's clock enters only where it reckons a `not_before`."""
    there = node.time()
    if not EARLIEST <= there < LATEST:
        return problem(
            f"the server's clock says {time.strftime('%Y-%m-%d', time.gmtime(there))}: every call is refused",
            "set the clock of the server's machine, and let NTP keep it",
        )
    ahead, unsure = offset(node)
    if unsure > CLIENT_SECS:
        return unknown("the server answers too slowly to compare clocks", "run doctor nearer to the server")
    if abs(ahead) - unsure <= CLIENT_SECS:
        return ok(f"the server's clock and this machine's differ by {abs(ahead) * 1000:.0f} ms")
    way = "ahead of" if ahead > 0 else "behind"
    return advice(
        f"the server's clock is {abs(ahead):.1f} s {way} this machine's",
        "let NTP keep both; until then a not_before that is reckoned here is off by that much",
    )
