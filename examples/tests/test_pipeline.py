"""A pipeline of three stages under kills: with hand-off nothing is lost or done twice; with complete, then add, it is.

The pipeline is that of the demo with --pipeline, with more items and more kills. Of every four kills two are planned: the next
worker of a stage that has items stops at a given moment and is killed there, so that both ways of passing on meet the
moments that matter, whatever the machine does. The others are of any worker and of a cleaner, at any time.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from leaseq_demo.pipeline import ITEMS_PER_KILL, Pipeline, PipelineOptions, shipped_id
from leaseq_demo.stage import LAST, MOMENTS, STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support import servers

ITEMS = 10_000
KILLS = 108
LIMIT = 240.0

pytestmark = pytest.mark.timeout(300)


@contextmanager
def after_the_kills(
    own_server: servers.StartServer, folder: Path, *, handoff: bool
) -> Iterator[tuple[Pipeline, dict[str, str]]]:
    """A pipeline that has run to its end, and what has left its last stage: id -> data, as the server has it.

    LEASEQ_SEED repeats whom the kills at any time were of, and how long they waited.
    """
    seed = int(os.environ.get("LEASEQ_SEED") or random.SystemRandom().randrange(10**6))
    print(f"LEASEQ_SEED={seed}")  # noqa: T201 (pytest shows it when the test fails)
    server = own_server()
    options = PipelineOptions(items=ITEMS, kills=KILLS, seed=seed)
    began = time.monotonic()
    with Pipeline(server.url, folder, options, handoff=handoff) as pipeline:
        for _ in pipeline.run():
            assert time.monotonic() - began < LIMIT, pipeline.standing
            time.sleep(0.02)
        standing = pipeline.standing
        assert (standing.kills["told"], standing.kills["worker"], standing.kills["cleaner"]) == (54, 27, 27)
        assert standing.moments == dict.fromkeys(MOMENTS, 18)
        with server.client(decode_responses=True) as client:
            yield pipeline, client.hgetall(pipeline.queues[LAST].keys.key("items"))
        print(  # noqa: T201 (figures, shown by pytest -s)
            f"{'hand-off' if handoff else 'complete, then add'}: {ITEMS} items, {standing.kills.total()} kills,"
            f" {standing.seconds:.1f} s, {standing.lost} lost"
        )
    assert not [log for log in folder.glob("*.log") if log.read_text()], "no process failed"


@pytest.mark.nightly
def test_with_a_hand_off_every_item_leaves_the_last_stage_exactly_once(
    own_server: servers.StartServer, tmp_path: Path
) -> None:
    """LQ-HANDOFF-2, LQ-COMPLETE-2, LQ-FAIL-1: the server's own counts agree in every stage, and the ids are all there.

    A worker fails when a follow-up of an item that it completed is there already, so none was added twice.
    """
    with after_the_kills(own_server, tmp_path, handoff=True) as (pipeline, shipped):
        for stage in STAGES:
            stats = pipeline.queues[stage].stats()
            assert (stats.added, stats.completed, stats.items, stats.dropped) == (ITEMS, ITEMS, 0, 0), stage
            assert stats.reclaimed >= 10, "kills really left leases behind"
        last = pipeline.queues[LAST].stats()
        assert (last.added, last.items) == (ITEMS, ITEMS)
        assert shipped == {
            shipped_id(number): f"order-{number:05} {' '.join(STAGES)}" for number in range(ITEMS)
        }
        assert pipeline.standing.lost == 0


@pytest.mark.nightly
def test_with_complete_then_add_items_are_lost(own_server: servers.StartServer, tmp_path: Path) -> None:
    """The reason for the hand-off: under the same kills, what a worker had completed and not yet added is gone."""
    with after_the_kills(own_server, tmp_path, handoff=False) as (pipeline, shipped):
        standing = pipeline.standing
        for stage in STAGES:
            stats = pipeline.queues[stage].stats()
            assert (stats.completed, stats.items, stats.dropped) == (stats.added, 0, 0), stage
        assert pipeline.queues[STAGES[0]].stats().added == ITEMS
        assert set(shipped) < {shipped_id(number) for number in range(ITEMS)}
        assert len(shipped) + standing.lost == ITEMS
        assert standing.lost >= standing.left_behind >= standing.moments["answered"]


def test_there_are_always_items_for_the_next_kill() -> None:
    """Whatever was lost of those that came last, some reach the stage whose worker is to die."""
    for kills in (12, 36, 1000):
        options = PipelineOptions(items=kills * ITEMS_PER_KILL, kills=kills)
        assert options.batch * 6 <= ITEMS_PER_KILL or options.batch == 1
