"""The jobs of a campaign, for `leaseq worker chaos.chaos_jobs:app`.

CHAOS_URL is the server, CHAOS_REPLICAS how many replicas are waited for, CHAOS_FOLDER the folder of the journals.
"""

from __future__ import annotations

import os
import random
import time
from functools import cache
from pathlib import Path
from typing import Final

import leaseq
from chaos.journal import ENDED, Journal
from leaseq import jobs

QUEUE: Final = "jobs"
URL: Final = os.environ.get("CHAOS_URL", "")
_REPLICAS: Final = int(os.environ.get("CHAOS_REPLICAS", "0"))
DURABLE: Final = leaseq.Replicas(_REPLICAS, timeout=1) if _REPLICAS else None
app = jobs.App(URL or None, queue=QUEUE, durable=DURABLE)


@app.job(name="chaos.step", retries=None, expires=None, backoff=0.1)
def step(ctx: jobs.Context) -> None:
    """Take a while."""
    time.sleep(random.uniform(0, 0.03))
    journal(os.getpid()).write(ENDED, ctx.id)


@cache
def journal(pid: int) -> Journal:
    """Return the journal of a process of the worker."""
    return Journal(Path(os.environ["CHAOS_FOLDER"], f"step-{pid}.journal"))
