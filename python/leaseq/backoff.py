"""Pauses before something that failed is tried again."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds until the next try: `first`, doubled with each failure, at most `last`; less up to half, by chance.

    So items that fail together do not come back together.

    Attributes:
        first: seconds after the first attempt.
        last: the most seconds.
    """

    first: float = 1.0
    last: float = 300.0

    def __call__(self, attempt: int) -> float:
        """The delay after this attempt (1 for the first)."""
        max_delay = min(self.last, self.first * 2.0 ** min(attempt - 1, 30))
        return max_delay * random.uniform(0.5, 1.0)  # noqa: S311 (no secret)
