"""The pairs in tables: the ratios that the targets judge, and what an item costs either side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from peers.figures import by_repetition, by_slice, middle, percentile, pooled, ratios, summary
from peers.libraries import BY_NAME
from peers.measures.latency import PERCENTILES
from peers.measures.pairs import LATENCY, PAIRS
from peers.results import records
from peers.shares import limit_of, share_of
from peers.tables import cell, markdown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peers.bench import Record
    from peers.measures.pairs import Pair

NO_PAIRS: Final = "The committed run was made before there were pairs."
HEAD: Final = (
    "pair",
    "ratio of rates",
    "a second",
    "the other's",
    "server us",
    "the other's",
    "client us",
    "the other's",
)
LATENCY_HEAD: Final = ("ms", "p50", "p99", "p99.9", "maximum", "samples")
COSTS: Final = ("client_us", "server_us")


def pair_shares(results: dict[str, Any]) -> list[str]:
    """For the documentation: ratios, and what an item costs the client and the server of either side."""
    of = records(results)
    rows = [
        (
            f"{measure.removeprefix('pairs-')}, {pair.case}",
            _ratio(of, measure, pair, "per_second"),
            *(_cell(of, measure, name, figure, pair, digits=1) for name in pair for figure in COSTS),
        )
        for measure, pair in _measured(of)
        if measure != LATENCY
    ]
    head = ("us for an item", "ratio of the rates", "client", "server", "the other's client", "its server")
    return markdown(head, rows) if rows else [NO_PAIRS]


def pair_rows(of: Sequence[Record]) -> list[tuple[str, ...]]:
    """For the page: a row for each pair that works on items."""
    return [
        (
            f"{measure.removeprefix('pairs-')}: {titles(pair)}",
            _ratio(of, measure, pair, "per_second"),
            *(_cell(of, measure, name, "per_second", pair) for name in pair),
            *(_cell(of, measure, name, figure, pair, digits=1) for figure in COSTS[::-1] for name in pair),
        )
        for measure, pair in _measured(of)
        if measure != LATENCY
    ]


def latency_pairs(of: Sequence[Record]) -> Iterator[tuple[str, list[float]]]:
    """Of each side of each pair that waits: what it is, and every latency in ms in ascending order."""
    for measure, pair in _measured(of):
        if measure == LATENCY:
            for name, other in (pair, (pair.other, pair.one)):
                title = f"{BY_NAME[name].title} (beside {BY_NAME[other].title})"
                yield title, pooled(of, LATENCY, name, "all_ms", pair.case)


def latency_row(of: Sequence[Record], title: str, took: Sequence[float]) -> tuple[str, ...]:
    """Percentiles in ms, each with its share: how much of it a bare wake-up takes."""
    cells = []
    for figure, at in PERCENTILES.items():
        value = percentile(took, at)
        enough = len(took) * (100 - at) / 100 >= 1
        cells.append(cell(value, share_of(of, LATENCY, title, figure, value), 2) if enough else "too few")
    return (title, *cells, f"{took[-1]:.2f}", str(len(took)))


def wake_up_row(of: Sequence[Record]) -> tuple[str, ...]:
    """The limit of each percentile."""
    least = [limit_of(of, LATENCY, "", figure) for figure in PERCENTILES]
    cells = ["not measured" if each is None else f"{each:.2f}" for each in least]
    return ("limit: an LPUSH wakes a BLPOP", *cells, "", "")


def titles(pair: Pair) -> str:
    """Both libraries as pages have them."""
    return " : ".join(BY_NAME[name].title for name in pair)


def _measured(of: Sequence[Record]) -> list[tuple[str, Pair]]:
    """The pairs that have records, in the order of the list."""
    seen = {(record.measure, record.case) for record in of}
    return [
        (measure, pair)
        for measure, several in PAIRS.items()
        for pair in several
        if (measure, pair.case) in seen
    ]


def _ratio(of: Sequence[Record], measure: str, pair: Pair, figure: str) -> str:
    """Of the slices of each turn: their median, the least and the most."""
    found = summary(ratios(*(by_slice(of, measure, name, figure, pair.case) for name in pair)))
    return f"{found['median']:.3g} ({found['min']:.3g} to {found['max']:.3g})" if found else "-"


def _cell(of: Sequence[Record], measure: str, library: str, figure: str, pair: Pair, digits: int = 0) -> str:
    value = middle(by_repetition(of, measure, library, figure, pair.case))
    return cell(value, share_of(of, measure, library, figure, value), digits)
