"""The report: one HTML page that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from peers import results as results_of
from peers import svg
from peers.figures import by_repetition, middle, percentile, pooled, summary
from peers.html import STYLE, section, table
from peers.libraries import BY_NAME
from peers.measures import jobs, life, limit, pairs
from peers.pair_tables import HEAD as PAIR_HEAD
from peers.pair_tables import LATENCY_HEAD, latency_pairs, latency_row, pair_rows, wake_up_row
from peers.shares import LEAST_BYTES, NO_LIMIT, NOT_MEASURED, calls, limit_of, percent, share_of
from peers.tables import machine_line, speed_rows, target_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peers.bench import Record

LESS: Final = "less is better"
JOB_BARS: Final = (
    ("enqueue one by one", "enqueue_per_second", "Jobs a second"),
    ("enqueue in bulk", "bulk_per_second", "Jobs a second; what has no call for many is left out"),
    ("drain, one worker process", "drain_per_second", "Jobs a second"),
    ("server CPU", "server_us", f"us for each job, from enqueue to done; {LESS}"),
)
BARS: Final = (
    ("Enqueue, one by one", "enqueue", "per_second", "Items a second"),
    ("Enqueue, in bulk", "bulk", "per_second", "Items a second; what has no call for many is left out"),
    ("Drain, one worker process", "drain", "per_second", "Items a second"),
    ("Drain, four worker processes", "drain-4", "per_second", "Items a second"),
    ("Server CPU, enqueue one by one", "enqueue", "server_us", f"us for each item; {LESS}"),
    ("Server CPU, enqueue in bulk", "bulk", "server_us", f"us for each item; {LESS}"),
    ("Server CPU, drain", "drain", "server_us", f"us for each item; {LESS}"),
    ("Commands, enqueue one by one", "enqueue", "commands", f"For each item, those inside scripts too; {LESS}"),
    ("Commands, drain", "drain", "commands", f"For each item, those inside scripts too; {LESS}"),
    *(
        (f"Jobs, {title}, results {'off' if measure == jobs.OFF else 'on'}", measure, figure, note)
        for measure in (jobs.OFF, jobs.ON)
        for title, figure, note in JOB_BARS
    ),
    (
        "Memory of a waiting item",
        "memory",
        "bytes_waiting",
        f"Bytes; {LESS}. The limit is the {LEAST_BYTES} bytes of its id and data",
    ),
    (
        "Commands of an idle worker",
        "idle",
        "commands_per_second",
        f"A second, those inside scripts too; {LESS}. The limit is 0, of which nothing is a share",
    ),
    ("Requests of an idle worker", "idle", "requests_per_second", f"A second; {LESS}. The limit is 0"),
)  # fmt: skip
PAIRED: Final = {"enqueue": pairs.ENQUEUE, "bulk": pairs.BULK, "drain": pairs.DRAIN}
GROWS: Final = "growth"
"""Its costs are compared with each other, so from zero; the other sweeps go over orders of magnitude."""
SWEEPS: Final = (
    ("Cost as the queue grows", GROWS, "server_us", "items that wait", "server CPU, us for each item"),
    ("Enqueue by size of the data", "payload", "enqueue_per_second", "bytes of data", "enqueued a second"),
    ("Drain by size of the data", "payload", "drain_per_second", "bytes of data", "drained a second"),
    ("By handlers side by side", "workers", "per_second", "handlers, each takes 5 ms", "drained a second"),
)
SHARES: Final = (
    "The percentages beside figures are shares of what the server could do: of a rate, how much of the rate that the "
    "server's CPU alone would do of the floor's scripts (the fewest commands that add, lease and complete, with no "
    "guarantees and no client); of a cost, a time or a size, how much of it is the least there can be. A drain is held "
    "against the floor in batches where the worker leases and completes many items in a call (leaseq's), otherwise "
    "against the floor at one item a call; what completes and leases in one call, against such a call. A library that "
    "promises less than the floor does can be above 100%. A figure without a share has no limit, as what a client costs, or one that was not measured. "
    "The limits are at the end of the page."
)


def page(results: dict[str, Any]) -> str:
    """The whole page."""
    records = results_of.records(results)
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>leaseq beside its peers</title>",
        f"<style>{STYLE}</style><h1>leaseq beside its peers</h1><p>{escape(machine_line(results))}</p>",
        _targets(results),
        section("Shares of the limit", SHARES, ""),
        _pairs(records),
        *(_bars(records, *each) for each in BARS),
        _latency(records),
        _recovery(records),
        *(_sweep(records, *each) for each in SWEEPS),
        _servers(records),
        _limit(records),
        _speed(results),
        _versions(results),
    ]
    return "\n".join(part for part in parts if part) + "</html>\n"


def _targets(results: dict[str, Any]) -> str:
    judged = table(("leaseq", "target", "measured", "met"), target_rows(results))
    note = "Median of the ratios of the repetitions, or of the turns of pairs, with the least and the most of them; latencies are percentiles of all turns."
    failures = "".join(f"<p class=no>{escape(failure)}</p>" for failure in results["failures"])
    return section("Targets", note, judged.replace("<td>no", "<td class=no>no") + failures)


def _pairs(records: Sequence[Record]) -> str:
    rows = pair_rows(records)
    note = (
        "Two libraries right beside each other, in short slices by turns: what the targets compare. Ratios are of the "
        "two slices of a turn, their median, the least and the most; the figures are medians of the repetitions. "
        "Latency in pairs is further below."
    )
    return section("Pairs", note, table(PAIR_HEAD, rows)) if rows else ""


def _bars(records: Sequence[Record], title: str, measure: str, figure: str, note: str) -> str:
    rows = []
    for name in results_of.chosen(records, measure):
        if of := summary(by_repetition(records, measure, name, figure).values()):
            library = BY_NAME[name]
            share = _behind(records, measure, name, figure, of["median"])
            rows.append(
                svg.Bar(library.title, of["median"], of["min"], of["max"], not library.is_peer, share)
            )
    if not rows:
        return ""
    note = f"{note}. {_limits(records, measure, figure)}{_not_paired(records, measure)}"
    return section(title, note, svg.bars(title, rows))


def _limits(records: Sequence[Record], measure: str, figure: str) -> str:
    """What the bars are held against, each limit once."""
    names = results_of.chosen(records, measure)
    if measure in NO_LIMIT or measure == life.MEMORY:
        return ""
    found = {limit_of(records, measure, name, figure): calls(measure, name, figure) for name in names}
    known = [f"{svg.number(most)} ({' + '.join(of)})" for most, of in found.items() if most]
    return f"Limit: {'; '.join(known)}. " if known else ""


def _behind(
    records: Sequence[Record], measure: str, library: str, figure: str, value: float, case: str = ""
) -> str:
    """What is said behind a figure: its share of the limit."""
    if measure in NO_LIMIT:
        return ""
    return " " + (percent(share_of(records, measure, library, figure, value, case)) or f"({NOT_MEASURED})")


def _not_paired(records: Sequence[Record], measure: str) -> str:
    """These bars were not measured in pairs; where there are pairs, they decide."""
    paired = PAIRED.get(measure)
    if not any(record.measure == paired for record in records):
        return ""
    return (
        f"Of the measure {measure}, one library after the other, not of the pairs that the targets compare."
    )


def _latency(records: Sequence[Record]) -> str:
    paired = list(latency_pairs(records))
    alone = [
        (BY_NAME[name].title, pooled(records, "latency", name, "all_ms"))
        for name in results_of.chosen(records, "latency")
    ]
    woken = pooled(records, limit.NAME, limit.WHO, "all_ms", limit.WAKE_UP)
    body = ""
    for what, of in (("In pairs, as the targets compare it", paired), ("One library after the other", alone)):
        if of:
            rows = [*(latency_row(records, title, took) for title, took in of), wake_up_row(records)]
            body += f"<h3>{what}</h3>{_distribution(of, woken)}{table(LATENCY_HEAD, rows)}"
    note = (
        "All repetitions together. The limit is from sending an LPUSH to the reply of a BLPOP that waits for it, with no "
        "client library on either side; its share is how much of each percentile that is."
    )
    return section("From adding an item to its handler, on an idle worker", note, body) if body else ""


def _distribution(of: Sequence[tuple[str, Sequence[float]]], woken: Sequence[float]) -> str:
    drawn = [svg.Line(title, _percentiles(took)) for title, took in of]
    if woken:
        drawn.append(svg.Line("limit: a wake-up", _percentiles(woken), is_limit=True))
    return svg.lines("Latency", drawn, "ms", "% of the items", log_y=False)


def _percentiles(took: Sequence[float]) -> list[tuple[float, float]]:
    return [(percentile(took, at), at) for at in (*range(1, 100), 99.5, 99.9, 100)]


def _recovery(records: Sequence[Record]) -> str:
    rows = [
        (BY_NAME[name].title, *(_recovered(records, name, case) for case in ("default", "quickest")))
        for name in results_of.chosen(records, "recovery")
    ]
    own = [
        (BY_NAME[name].title, *(_recovered(records, name, case, "recovery-1s") for case in _CLEANED))
        for name in results_of.chosen(records, "recovery-1s")
    ]
    body = table(("seconds", "at default settings", "set to be quick"), rows) if rows else ""
    if own:
        body += table(("seconds, a lease of 1 s", *_CLEANED), own)
    note = (
        "Kill -9 of the worker that holds the item, beside an idle one: median, least and most of the repetitions. "
        "Nothing can run again before the lease ends that the killed worker held, less the tenth of a second that it "
        "had held it: the share is how much of the time that is. The others have no lease, or a time-out of their own "
        "(their settings: docs/benchmarks.md), so no share."
    )
    return section("A killed worker's item runs again", note, body) if body else ""


_CLEANED = ("without a cleaner", "with a cleaner")


def _recovered(records: Sequence[Record], library: str, case: str, measure: str = "recovery") -> str:
    of = [
        record.values["seconds"]
        for record in records
        if (record.measure, record.library, record.case) == (measure, library, case)
    ]
    times = [each for each in of if each is not None]
    if len(times) < len(of):
        return f"never ({len(of) - len(times)} of {len(of)})"
    found = summary(times)
    if not found:
        return ""
    share = percent(share_of(records, measure, library, "seconds", found["median"], case))
    return f"{found['median']:.2f} ({found['min']:.2f} to {found['max']:.2f}) {share}"


def _sweep(
    records: Sequence[Record], title: str, measure: str, figure: str, x_label: str, y_label: str
) -> str:
    names = results_of.chosen(records, measure)
    if not names:
        return ""
    cases = _cases(records, measure)
    lines = [svg.Line(BY_NAME[name].title, _points(records, measure, name, figure, cases)) for name in names]
    most = [(_size(case), limit_of(records, measure, names[0], figure, case)) for case in cases]
    known = [(at, value) for at, value in most if value]
    if known:
        lines.append(svg.Line("limit", known, is_limit=True))
    rows = [
        (BY_NAME[name].title, *(_with_share(records, measure, name, figure, case) for case in cases))
        for name in names
    ]
    note = f"Medians, and the share of the limit of each case. The limit drawn is that of {BY_NAME[names[0]].title}."
    plot = svg.lines(title, lines, x_label, y_label, log_y=measure != GROWS)
    return section(title, note + NOTES.get(measure, ""), plot + table((y_label, *cases), rows))


NOTES: Final = {
    "payload": " From 100 kB on it is a plain SET or GET of such data, since scripts copy them. Of 1 MB there are 30 items: who has fetched many before the first is handled, as BullMQ on Node with its 100 handlers, is counted from there.",
    "workers": " Handlers that take 5 ms end no more than 200 items a second each: where that is less than the floor does, it is the limit.",
}


def _cases(records: Sequence[Record], measure: str) -> list[str]:
    """By their sizes."""
    return sorted({record.case for record in records if record.measure == measure}, key=_size)


def _size(case: str) -> float:
    return float(case.split(maxsplit=1)[0].replace(",", ""))


def _points(
    records: Sequence[Record], measure: str, name: str, figure: str, cases: Sequence[str]
) -> list[tuple[float, float]]:
    middles = [(_size(case), middle(by_repetition(records, measure, name, figure, case))) for case in cases]
    return [(at, value) for at, value in middles if value is not None]


def _with_share(records: Sequence[Record], measure: str, name: str, figure: str, case: str) -> str:
    value = middle(by_repetition(records, measure, name, figure, case))
    if value is None:
        return "-"
    return svg.number(value) + _behind(records, measure, name, figure, value, case)


def _servers(records: Sequence[Record]) -> str:
    cases = sorted({record.case for record in records if record.measure == "servers"})
    rows = [
        (
            f"{BY_NAME[name].title}, {what}",
            *(_with_share(records, "servers", name, figure, case) for case in cases),
        )
        for name in results_of.chosen(records, "servers")
        for what, figure in (("enqueue", "enqueue_per_second"), ("drain", "drain_per_second"))
    ]
    note = (
        "Items a second, medians, and the share of what the same server could do. Where the file is synced always, that is "
        "by the clock, one item a call over 50 connections, whose calls share a sync: who makes one call after the other "
        "waits for a sync each time."
    )
    return section("On other servers", note, table(("", *cases), rows)) if rows else ""


def _limit(records: Sequence[Record]) -> str:
    body = "".join(_limit_table(records, measure) for measure in (limit.NAME, limit.CASES))
    note = (
        "Server CPU for one command (in batches: for one item), how many that is in a second of one CPU, and the "
        "commands it runs, those inside scripts too."
    )
    return section("What the server could do", note, body) if body else ""


def _limit_table(records: Sequence[Record], measure: str) -> str:
    cases = dict.fromkeys(
        record.case for record in records if record.measure == measure and "server_us" in record.values
    )
    rows = [(case, *(_plain(records, measure, figure, case) for figure in LIMIT_FIGURES)) for case in cases]
    return table(("", "us", "a second", "commands"), rows) if rows else ""


LIMIT_FIGURES: Final = ("server_us", "per_second", "commands")


def _plain(records: Sequence[Record], measure: str, figure: str, case: str) -> str:
    value = middle(by_repetition(records, measure, limit.WHO, figure, case))
    return "-" if value is None else svg.number(value)


def _speed(results: dict[str, Any]) -> str:
    rows = speed_rows(results)
    note = "A fixed loop was timed before each slice of a pair, and before each enqueueing and drain of jobs: the speed as a share of the best of the run. No figure is corrected by it."
    return (
        section(
            "The machine",
            note,
            table(("", "median", "least", "most", "both ends' share of the CPU", "least"), rows),
        )
        if rows
        else ""
    )


def _versions(results: dict[str, Any]) -> str:
    rows = [(BY_NAME[name].title, version) for name, version in results["versions"].items()]
    return section("Versions", "Settings of each: docs/benchmarks.md.", table(("library", "version"), rows))
