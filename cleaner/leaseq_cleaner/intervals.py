"""When to look again: the cleaner's arithmetic, without clocks and without I/O."""

import random
from dataclasses import dataclass

from leaseq.backoff import Backoff
from leaseq.errors import BadArgumentError
from leaseq.flows import WAIT_CAP
from leaseq.results import LightClean

MAX_SLEEP_SECONDS = WAIT_CAP
"""Seconds after which a queue is looked at again whatever it said: a lease may have been given since, for less.

The bound that the protocol states for every wake-up that is lost (LQ-BLOCK-2).
"""

STATS_SECS = 40.0
"""Between two looks at the counts of a queue. With one light clean in 4 s: 0.275 requests a second for an idle queue."""

DISCOVERY_SECS = 10.0
"""Between two looks at the registry, for all queues together."""

REGISTRY_GRACE_SECS = 360.0
"""Within it a queue that is gone from the registry is kept clean: a registry that was deleted fills again within five minutes.

Clients enter the queues that they use every 300 s (LQ-REGISTRY-2).
"""

DEEP_SPREAD_SECS = 600.0
"""The first deep clean of a queue starts within this time, so it also starts if the cleaner is restarted daily."""

ONCE_RATE = 100.0
"""Pages a second of a deep clean that a person waits for. Other calls of the server come in between."""

until_next_try = Backoff(1.0, 5.0)
"""Seconds to pause, by the number of failures in a row."""
_rng = random.SystemRandom()


@dataclass(frozen=True)
class Intervals:
    """The pauses between looks at queues; see `Cleaner`. Raises BadArgumentError."""

    light_secs: float = 1.0
    deep_secs: float = 6 * 3600.0
    deep_rate: float = 10.0

    def __post_init__(self) -> None:
        """Refuse a pause of 0 or without end."""
        if self.light_secs < 0.05 or self.deep_secs < 0 or self.deep_rate <= 0:
            raise BadArgumentError("light_secs is at least 0.05, deep_secs at least 0, deep_rate above 0")

    def until_next_look(self, done: LightClean) -> float:
        """Seconds: soon where there was something to do; else at what comes due next, within the longest sleep."""
        longest = max(MAX_SLEEP_SECONDS, self.light_secs)
        if done.total > 0:
            return self.light_secs
        return longest if done.wait is None else min(max(done.wait, self.light_secs), longest)

    def first_look(self) -> float:
        """Seconds until the first light clean of a queue that was just found: spread over one interval."""
        return _rng.uniform(0, self.light_secs)

    def first_deep(self) -> float:
        """Seconds until the first deep clean of a queue that was just found."""
        return _rng.uniform(0, min(self.deep_secs, DEEP_SPREAD_SECS))

    def until_next_deep(self) -> float:
        """Seconds until a queue's next deep clean: a tenth more or less, so that cleaners and queues drift apart."""
        return self.deep_secs * _rng.uniform(0.9, 1.1)
