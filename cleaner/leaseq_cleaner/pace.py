"""When to look again: the cleaner's arithmetic, without clocks and without I/O."""

import random

from leaseq.backoff import Backoff
from leaseq.flows import WAIT_CAP
from leaseq.results import LightClean

LONGEST_SLEEP = WAIT_CAP
"""Seconds after which a queue is looked at again whatever it said: a lease may have been given since, for less.

The bound that the protocol states for every wake-up that is lost (LQ-BLOCK-2).
"""

STATS_SECS = 40.0
"""Between two looks at the counts of a queue. With one light clean in 4 s: 0.275 requests a second for an idle queue."""

DISCOVERY_SECS = 10.0
"""Between two looks at the registry, for all queues together."""

DEEP_SPREAD_SECS = 600.0
"""The first deep clean of a queue begins within this time, so that one begins also where a cleaner is restarted daily."""

until_next_try = Backoff(1.0, 5.0)
"""Seconds after so many failures in a row."""
_rng = random.SystemRandom()


def until_next_look(done: LightClean, light_secs: float) -> float:
    """Seconds: soon where there was something to do; else at what comes due next, within the longest sleep."""
    longest = max(LONGEST_SLEEP, light_secs)
    if done.total > 0:
        return light_secs
    return longest if done.wait is None else min(max(done.wait, light_secs), longest)


def first_look(light_secs: float) -> float:
    """Seconds until the first light clean of a queue that was just found: spread over one interval."""
    return _rng.uniform(0, light_secs)


def first_deep(deep_secs: float) -> float:
    """Seconds until the first deep clean of a queue that was just found."""
    return _rng.uniform(0, min(deep_secs, DEEP_SPREAD_SECS))


def until_next_deep(deep_secs: float) -> float:
    """Seconds until a queue's next deep clean: a tenth more or less, so that cleaners and queues drift apart."""
    return deep_secs * _rng.uniform(0.9, 1.1)
