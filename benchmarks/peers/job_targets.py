"""The targets of the job layer: ahead of the best of the job libraries, with results off and on, in one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peers.figures import by_repetition, combined, ratios
from peers.libraries import BY_NAME, JOB_PEERS, JOBS
from peers.measures import jobs
from peers.targets import Target, target_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peers.bench import Record
    from peers.figures import ByRepetition

CASES: Final = ((jobs.OFF, "results off"), (jobs.ON, "results on"))


def targets(records: Sequence[Record]) -> list[Target]:
    """All of them, those that were not measured too."""
    return [
        target
        for measure, case in CASES
        for name in JOBS
        for target in _of(records, measure, f"{BY_NAME[name].title}, {case}", name)
    ]


def _of(records: Sequence[Record], measure: str, title: str, name: str) -> list[Target]:
    def own(figure: str) -> ByRepetition:
        return by_repetition(records, measure, name, figure)

    def ahead(what: str, figure: str, *of_peers: str) -> Target:
        over = ratios(own(figure), _first_peer(records, measure, max, of_peers or (figure,)))
        return target_of(f"{title}: {what}, over the best peer", 1.0, over, at_least=True)

    def cheaper(what: str, figure: str, *of_peers: str) -> Target:
        share = ratios(own(figure), _first_peer(records, measure, min, of_peers or (figure,)))
        return target_of(f"{title}: {what}, of the least peer's", 1.0, share, at_least=False)

    return [
        ahead("enqueue one by one", "enqueue_per_second"),
        ahead("enqueue in bulk", "bulk_per_second", "bulk_per_second", "enqueue_per_second"),
        ahead("drain", "drain_per_second"),
        cheaper("server CPU of one job", "server_us"),
        cheaper("server CPU of one job, in bulk", "bulk_server_us", "bulk_server_us", "server_us"),
    ]


def _first_peer(
    records: Sequence[Record], measure: str, function: Callable[[list[float]], float], figures: Sequence[str]
) -> ByRepetition:
    """The best figure of all peers in each repetition; of several figures each peer's own best counts."""
    parts = (by_repetition(records, measure, peer, figure) for peer in JOB_PEERS for figure in figures)
    return combined(function, *(part for part in parts if part))
