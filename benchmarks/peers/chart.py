"""The picture of the README: jobs a second of each job library, with an empty function and with a function that takes 5 ms.

`make generate` draws it from the committed results. `def` functions stand beside `def` functions, `async def` beside `async def`.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

from peers.libraries import BY_NAME, JOB_PEERS, JOBS
from peers.measures import jobs, parameter_sweep
from peers.results import records
from peers.stats import by_repetition, middle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peers.bench import Record

WIDTH: Final = 860
LABELS, GAP, PANEL = 130, 56, 300
"""Widths: the names on the left, the space between the two panels, a panel's longest bar."""
ROW, BAR = 22, 15
OURS, THEIRS, TEXT, LINE = "#c2410c", "#94a3b8", "#1e293b", "#cbd5e1"
MOST: Final = parameter_sweep.HANDLERS * 1000 // parameter_sweep.WAIT_MS
"""Items per second that 20 handlers of 5 ms can handle at most."""
STYLE: Final = (
    f"text{{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:{TEXT}}}.title{{font-weight:600}}"
)


def picture(of_jobs: dict[str, Any], of_items: dict[str, Any]) -> str:
    """The picture as SVG; medians of the repetitions."""
    found = records(of_jobs)
    both = [*records(of_items), *found]
    empty = {name: _median(found, name, jobs.OFF, "drain_per_second") for name in (*JOBS, *JOB_PEERS)}
    waits = {
        name: _median(both, name, parameter_sweep.WORKERS, "per_second", parameter_sweep.CASE)
        for name in empty
    }
    body = [
        *_text(LABELS, 20, "empty function, jobs a second", "title"),
        *_text(LABELS + PANEL + GAP, 20, f"5 ms function, 20 at a time (limit {MOST:,})", "title"),
    ]
    top = 34
    for own in JOBS:
        body += _text(4, top + 15, "async def" if own.endswith("asyncio") else "def", "title")
        top += ROW
        ours_first = (own, *(peer for peer, beside in JOB_PEERS.items() if beside == own))
        for name in ours_first:
            body += _row(name, top, empty[name] / max(empty.values()), empty[name], 0)
            body += _row(name, top, waits[name] / MOST, waits[name], PANEL + GAP)
            body += _text(4, top + 12, BY_NAME[name].title.split(", asyncio")[0])
            top += ROW
        top += 8
    machine = of_jobs["environment"]["cpu_model"]
    note = (
        f"One worker process, results not kept, everything on one CPU ({machine}), "
        f"{of_jobs['server']}, {of_jobs['measured_at'][:10]}."
    )
    body += _text(4, top + 14, note)
    height = top + 26
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="Jobs a second by library">'
    )
    frame = f'<rect width="{WIDTH}" height="{height}" fill="#fff" stroke="{LINE}"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", frame, *body, "</svg>", ""])


def _row(name: str, top: int, share: float, value: float, offset: int) -> Iterator[str]:
    width = max(2, round(share * (PANEL - 60)))
    colour = OURS if name in JOBS else THEIRS
    left = LABELS + offset
    yield f'<rect x="{left}" y="{top}" width="{width}" height="{BAR}" fill="{colour}"/>'
    yield from _text(left + width + 6, top + 12, f"{value:,.0f}")


def _text(left: int, line: int, words: str, style: str = "") -> Iterator[str]:
    yield f'<text x="{left}" y="{line}"{f" class={chr(34)}{style}{chr(34)}" if style else ""}>{escape(words)}</text>'


def _median(of: Sequence[Record], library: str, measure: str, figure: str, case: str = "") -> float:
    """The median of the repetitions; 0 if the library was not measured."""
    return middle(by_repetition(of, measure, library, figure, case)) or 0
