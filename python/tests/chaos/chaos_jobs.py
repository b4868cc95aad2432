"""The jobs of a campaign, for `leaseq worker chaos.chaos_jobs:app`. CHAOS_URL is the server, CHAOS_REPLICAS how many replicas are waited for."""

from __future__ import annotations

import os
import random
import time
from typing import Final

import leaseq
from leaseq import jobs

QUEUE: Final = "jobs"
URL: Final = os.environ.get("CHAOS_URL", "")
_REPLICAS: Final = int(os.environ.get("CHAOS_REPLICAS", "0"))
DURABLE: Final = leaseq.Replicas(_REPLICAS, timeout=1) if _REPLICAS else None
app = jobs.App(URL or None, queue=QUEUE, durable=DURABLE)


@app.job(name="chaos.step", retries=None, expires=None, backoff=0.1)
def step() -> None:
    """Take a while."""
    time.sleep(random.uniform(0, 0.03))
