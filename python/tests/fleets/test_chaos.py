"""The campaign of `make chaos`: what its verdict counts, and one row of it."""

from __future__ import annotations

import pytest
from chaos import __main__ as campaign
from chaos.faults import FAULTS, Fault, kill_server
from chaos.journal import ADDED, ENDED, ENQUEUED, TRUE, WRONG, Line
from chaos.soak import STEADY, Sample, growth
from chaos.stage import Stage
from chaos.verdict import NEVER, Verdict, judge

GOOD = [
    *(Line(number, ADDED, f"item {number}") for number in range(3)),
    *(Line(number + 0.5, ENDED, f"item {number}") for number in range(3)),
    *(Line(number + 0.6, TRUE, f"item {number}") for number in range(3)),
    Line(1, ENQUEUED, "job"),
]


def test_a_campaign_without_a_fault_that_counts() -> None:
    found = judge(GOOD, [], [0, 0], [0.0, 1.0])
    assert (found.items, found.jobs) == (3, 1)
    assert found.recovery == pytest.approx(0.6)
    assert found.problems(server_loses=False) == []


@pytest.mark.parametrize(
    ("more", "without", "unknown", "stuck", "over", "problem"),
    [
        ([], Line(0.5, ENDED, "item 0"), [], [0, 0], [0.0], "1 lost"),
        ([Line(3, TRUE, "item 1")], None, [], [0, 0], [0.0], "1 completed twice"),
        ([], None, ["job"], [0, 0], [0.0], "1 lost"),
        ([Line(2, ENDED, "job")], None, ["job"], [0, 0], [0.0], "1 jobs without an outcome"),
        ([Line(3, ADDED, "item 3")], None, [], [1, 0], [0.0], "1 lost"),
        ([Line(3, ADDED, "item 3")], None, [], [1, 1], [0.0], "1 stuck"),
        ([Line(3, WRONG, "KeyError")], None, [], [0, 0], [0.0], "1 without a name"),
        ([], None, [], [0, 0], [2.6], "no completion behind a fault"),
    ],
)
def test_what_counts(
    more: list[Line],
    without: Line | None,
    unknown: list[str],
    stuck: list[int],
    over: list[float],
    problem: str,
) -> None:
    lines = [line for line in GOOD if line != without]
    found = judge([*lines, *more], unknown, stuck, over)
    assert problem in found.problems(server_loses=False)


def test_what_a_server_loses_is_reported_and_stuck_items_are_not_excused() -> None:
    lossy = Verdict(items=9, jobs=9, lost=3, lost_jobs=2, twice=1, stuck=1, stuck_after=1)
    assert lossy.problems(server_loses=True) == ["1 stuck after a deep clean"]
    assert Verdict(items=9, jobs=9, recovery=NEVER).problems(server_loses=True) == [
        "no completion behind a fault"
    ]
    assert Verdict().problems(server_loses=True) == ["no load"]


def test_names_are_different() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def sample(completed: int = 3000, memory: int = 50 << 20, descriptors: int = 20) -> Sample:
    return Sample(completed, (memory,) * len(STEADY), (descriptors,) * len(STEADY))


@pytest.mark.parametrize(
    ("last", "problem"),
    [
        (sample(memory=80 << 20), "produce: memory grew from 52428800 to 83886080"),
        (sample(descriptors=25), "cleaner: descriptors grew from 20 to 25"),
        (sample(completed=2000), "throughput fell from 3000 to 2000 items a minute"),
    ],
)
def test_what_is_not_flat(last: Sample, problem: str) -> None:
    assert growth([sample()] * 9) == []
    assert problem in growth([*[sample()] * 6, *[last] * 3])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_row(startable_name: str) -> None:
    """Servers, programs, faults and counts, on the smallest scale."""
    verdict = campaign.run(Fault("once", Stage, kill_server, 1), 1, startable_name, 0)
    assert verdict.problems(server_loses=False) == []
    assert campaign.row("once", verdict).split()[:3] == ["once", str(verdict.items), str(verdict.jobs)]
