"""The report: one HTML page that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from peers import results as results_of
from peers import svg
from peers.figures import by_repetition, middle, percentile, pooled, summary
from peers.libraries import BY_NAME
from peers.measures import jobs
from peers.tables import limit_of, machine_line, speed_rows, target_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peers.bench import Record

STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.15rem .7rem;border-bottom:1px solid #ddd;"
    "text-align:right}td:first-child,th:first-child{text-align:left}.no{color:#b00020;font-weight:600}"
    "svg{max-width:100%;height:auto}h2{margin-top:2.2rem}"
)
JOB_BARS: Final = (
    ("enqueue one by one", "enqueue_per_second", "jobs a second"),
    ("enqueue in bulk", "bulk_per_second", "jobs a second; what has no call for many is left out"),
    ("drain, one worker process", "drain_per_second", "jobs a second"),
    ("server CPU", "server_us", "us for each job, from enqueue to done; less is better"),
)
BARS: Final = (
    ("Enqueue, one by one", "enqueue", "per_second", "items a second"),
    ("Enqueue, in bulk", "bulk", "per_second", "items a second; what has no call for many is left out"),
    ("Drain, one worker process", "drain", "per_second", "items a second"),
    ("Drain, four worker processes", "drain-4", "per_second", "items a second"),
    ("Server CPU, enqueue one by one", "enqueue", "server_us", "us for each item; less is better"),
    ("Server CPU, drain", "drain", "server_us", "us for each item; less is better"),
    ("Commands, drain", "drain", "commands", "for each item, those inside scripts too"),
    *(
        (f"Jobs, {title}, results {'off' if measure == jobs.OFF else 'on'}", measure, figure, note)
        for measure in (jobs.OFF, jobs.ON)
        for title, figure, note in JOB_BARS
    ),
    ("Memory of a waiting item", "memory", "bytes_waiting", "bytes; less is better"),
    (
        "Commands of an idle worker",
        "idle",
        "commands_per_second",
        "a second, those inside scripts too; less is better",
    ),
    ("Requests of an idle worker", "idle", "requests_per_second", "a second; less is better"),
)
GROWS: Final = "growth"
"""Its costs are compared with each other, so from zero; the other sweeps go over orders of magnitude."""
SWEEPS: Final = (
    ("Cost as the queue grows", GROWS, "server_us", "items that wait", "server CPU, us for each item"),
    ("By size of the data", "payload", "drain_per_second", "bytes of data", "drained a second"),
    ("By handlers side by side", "workers", "per_second", "handlers, each takes 5 ms", "drained a second"),
)


def page(results: dict[str, Any]) -> str:
    """The whole page."""
    records = results_of.records(results)
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>leaseq beside its peers</title>",
        f"<style>{STYLE}</style><h1>leaseq beside its peers</h1><p>{escape(machine_line(results))}</p>",
        _targets(results),
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


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}" for cell in head)]
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}" for cell in row) for row in rows]
    return "<table>" + "\n".join(lines) + "</table>"


def _section(title: str, note: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2><p>{escape(note)}</p>{body}"


def _targets(results: dict[str, Any]) -> str:
    table = _table(("leaseq", "target", "measured", "met"), target_rows(results))
    note = "Median of the ratios of the repetitions, or of the turns of pairs, with the least and the most of them; latencies are percentiles of all turns."
    failures = "".join(f"<p class=no>{escape(failure)}</p>" for failure in results["failures"])
    return _section("Targets", note, table.replace("<td>no", "<td class=no>no") + failures)


def _bars(records: Sequence[Record], title: str, measure: str, figure: str, note: str) -> str:
    most = limit_of(records, measure) if figure == "per_second" else None
    rows = []
    for name in results_of.chosen(records, measure):
        if of := summary(by_repetition(records, measure, name, figure).values()):
            library = BY_NAME[name]
            share = f"  {of['median'] / most:.1%}" if most else ""
            rows.append(
                svg.Bar(library.title, of["median"], of["min"], of["max"], not library.is_peer, share)
            )
    if not rows:
        return ""
    if most:
        note += (
            f", and the share of the {svg.number(most)} that the server's CPU would do of the floor's scripts, "
            "the fewest commands, with no guarantees and no client"
        )
    return _section(title, note, svg.bars(title, rows))


def _latency(records: Sequence[Record]) -> str:
    lines, rows = [], []
    for name in results_of.chosen(records, "latency"):
        took = pooled(records, "latency", name, "all_ms")
        shares = [*range(1, 100), 99.5, 99.9, 100]
        title = BY_NAME[name].title
        lines.append(svg.Line(title, [(percentile(took, share), share) for share in shares]))
        slowest = svg.number(percentile(took, 99.9)) if len(took) >= 1000 else "too few"
        figures = [svg.number(percentile(took, share)) for share in (50, 99)]
        rows.append((title, *figures, slowest, svg.number(took[-1]), str(len(took))))
    if not lines:
        return ""
    plot = svg.lines("Latency", lines, "ms", "% of the items", log_y=False)
    table = _table(("ms", "p50", "p99", "p99.9", "maximum", "samples"), rows)
    return _section(
        "From adding an item to its handler, on an idle worker", "All repetitions together.", plot + table
    )


def _recovery(records: Sequence[Record]) -> str:
    rows = [
        (BY_NAME[name].title, *(_recovered(records, name, case) for case in ("default", "quickest")))
        for name in results_of.chosen(records, "recovery")
    ]
    own = [
        (BY_NAME[name].title, *(_recovered(records, name, case, "recovery-1s") for case in _CLEANED))
        for name in results_of.chosen(records, "recovery-1s")
    ]
    body = _table(("seconds", "at default settings", "set to be quick"), rows) if rows else ""
    if own:
        body += _table(("seconds, a lease of 1 s", *_CLEANED), own)
    note = "Kill -9 of the worker that holds the item, beside an idle one: median, least and most of the repetitions."
    return _section("A killed worker's item runs again", note, body) if body else ""


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
    return f"{found['median']:.2f} ({found['min']:.2f} to {found['max']:.2f})" if found else ""


def _sweep(
    records: Sequence[Record], title: str, measure: str, figure: str, x_label: str, y_label: str
) -> str:
    lines = []
    for name in results_of.chosen(records, measure):
        cases = {record.case for record in records if (record.measure, record.library) == (measure, name)}
        points = [
            (float(case.split()[0].replace(",", "")), value)
            for case in cases
            if (value := middle(by_repetition(records, measure, name, figure, case))) is not None
        ]
        lines.append(svg.Line(BY_NAME[name].title, sorted(points)))
    return (
        _section(title, "Medians.", svg.lines(title, lines, x_label, y_label, log_y=measure != GROWS))
        if lines
        else ""
    )


def _servers(records: Sequence[Record]) -> str:
    cases = sorted({record.case for record in records if record.measure == "servers"})
    rows = [
        (
            f"{BY_NAME[name].title}, {what}",
            *(
                svg.number(middle(by_repetition(records, "servers", name, figure, case)) or 0.0)
                for case in cases
            ),
        )
        for name in results_of.chosen(records, "servers")
        for what, figure in (("enqueue", "enqueue_per_second"), ("drain", "drain_per_second"))
    ]
    return (
        _section("On other servers", "Items a second, medians.", _table(("", *cases), rows)) if rows else ""
    )


def _limit(records: Sequence[Record]) -> str:
    cases = list(dict.fromkeys(record.case for record in records if record.measure == "limit"))
    rows = [
        (case, *(svg.number(middle(by_repetition(records, "limit", "server", figure, case)) or 0.0) for figure in ("server_us", "per_second")))
        for case in cases
    ]  # fmt: skip
    note = (
        "Server CPU for one command (in batches: for one item), and how many that is in a second of one CPU."
    )
    return _section("What the server could do", note, _table(("", "us", "a second"), rows)) if rows else ""


def _speed(results: dict[str, Any]) -> str:
    rows = speed_rows(results)
    note = "A fixed loop was timed before each slice of a pair, and before each enqueueing and drain of jobs: the speed as a share of the best of the run. No figure is corrected by it."
    return (
        _section(
            "The machine",
            note,
            _table(("", "median", "least", "most", "both ends' share of the CPU", "least"), rows),
        )
        if rows
        else ""
    )


def _versions(results: dict[str, Any]) -> str:
    rows = [(BY_NAME[name].title, version) for name, version in results["versions"].items()]
    return _section("Versions", "Settings of each: docs/benchmarks.md.", _table(("library", "version"), rows))
