"""The failovers of benchmarks/failover.py, and the figures on docs/durability.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import servers

from failover import SCENES, WAITS

BENCHMARKS = Path(__file__).parents[1]
PAGE = BENCHMARKS.parent / "docs" / "durability.md"
RESULTS = BENCHMARKS / "results" / "failover.json"
NAMES = {
    "kill": "killed",
    "partition": "cut off",
    "kill-lagging": "killed, a late replica takes over",
}


def test_the_page_has_the_figures() -> None:
    results = json.loads(RESULTS.read_text())
    assert f"sum of {results['seeds']} failovers" in PAGE.read_text().replace("\n", " ")
    for scene, name in NAMES.items():
        counts = [results["scenes"][scene][wait] for wait in WAITS]
        cells = [f"{each['acknowledged']:,}, {each['lost']:,} lost" for each in counts]
        assert f"| {name} | {' | '.join(cells)} |" in PAGE.read_text()
    assert NAMES.keys() == SCENES.keys()


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("scene", SCENES)
def test_what_all_replicas_have_is_not_lost(scene: str, server_name: str) -> None:
    """One seed of each scene: without a wait something can be lost, with one for all replicas nothing is."""
    program = str(servers.find_program(servers.startable(server_name)))
    command = [sys.executable, str(BENCHMARKS / "failover.py"), "--seeds", "1", "--scene", scene]
    ended = subprocess.run(
        [*command, "--server", program],
        capture_output=True,
        text=True,
        timeout=800,
        check=True,
        cwd=BENCHMARKS,
    )
    found: dict[str, Any] = json.loads(ended.stdout)["scenes"][scene]
    assert all(found[wait]["acknowledged"] > 0 for wait in WAITS), ended.stderr
    assert found["replicas-2"]["lost"] == 0, ended.stderr
    if scene == "partition":
        assert found["none"]["lost"] > 0, ended.stderr
        assert found["replicas-1"]["not_durable"] > 0, ended.stderr
