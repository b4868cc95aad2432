"""The scripts against the reference model: random histories of a queue, on a real server.

    LEASEQ_HYPOTHESIS_EXAMPLES=5000 LEASEQ_HYPOTHESIS_SEED=7 pytest python/tests/model/test_model.py --tier=nightly

runs longer and elsewhere than the fixed profiles; without a seed one is chosen and printed.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test
from support.stateful_queue import QueueMachine

if TYPE_CHECKING:
    import redis

EXAMPLES = int(os.environ.get("LEASEQ_HYPOTHESIS_EXAMPLES", "0"))
SEED = os.environ.get("LEASEQ_HYPOTHESIS_SEED")


@pytest.mark.promise("G1", "G3", "G4", "G11", "G28")
@pytest.mark.parametrize(
    ("examples", "steps"),
    [
        pytest.param(20, 20, id="few"),
        pytest.param(
            EXAMPLES or 500,
            50,
            marks=[pytest.mark.nightly, pytest.mark.timeout(0 if EXAMPLES else 1800)],
            id="many",
        ),
    ],
)
def test_scripts_do_what_the_model_does(
    redis_client: redis.Redis, capsys: pytest.CaptureFixture[str], examples: int, steps: int
) -> None:
    """LQ-ITEM-3, LQ-CALL-5 and the rules cited in the machine."""

    class Machine(QueueMachine):
        name = f"machine-{random.getrandbits(64):x}"

    Machine.client = redis_client
    profile = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=not (EXAMPLES or SEED),
        database=None,
        print_blob=True,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    if not profile.derandomize:
        number = int(SEED or random.SystemRandom().getrandbits(32))
        seeded(number)(Machine)
        with capsys.disabled():
            print(f"\nLEASEQ_HYPOTHESIS_SEED={number}")  # noqa: T201
    run_state_machine_as_test(Machine, settings=profile)
