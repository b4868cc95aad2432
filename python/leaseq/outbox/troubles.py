"""Failures of a relay: pauses that grow, and one line in the log for each trouble and for its end."""

import logging
import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from leaseq.backoff import Backoff

log = logging.getLogger("leaseq.outbox")

PAUSES: Final = Backoff(0.1, 5.0)
"""Seconds before something that failed is tried again."""


@dataclass(slots=True)
class Trouble:
    """Failures in a row, when it is tried again (on `time.monotonic`), and whether the log has a line about it."""

    failures: int = 0
    until: float = 0.0
    logged: bool = False


class Troubles:
    """The troubles of one relay, by what they are about: the database, the server, or a queue."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Trouble] = {}

    def failed(self, what: Hashable, name: str, error: Exception) -> float:
        """Note a failure, and log the first one in a row. Return the seconds of the pause after it."""
        pause = self.pause(what)
        trouble = self._found[what]
        if not trouble.logged:
            trouble.logged = True
            log.warning("%s: %s; the relay tries again until it works", name, str(error).partition("\n")[0])
        return pause

    def pause(self, what: Hashable) -> float:
        """Note that it is not to be tried for a time, which grows with each call, and return the seconds. Nothing is logged."""
        trouble = self._found.setdefault(what, Trouble())
        trouble.failures += 1
        pause = PAUSES(trouble.failures)
        trouble.until = time.monotonic() + pause
        return pause

    def worked(self, what: Hashable, name: str) -> None:
        """Note that it works, and log that if the log has its failure."""
        ended = self._found.pop(what, None)
        if ended is not None and ended.logged:
            log.warning("%s: works again", name)

    def pausing(self) -> list[Hashable]:
        """Return what is not to be tried now."""
        now = time.monotonic()
        return [what for what, trouble in self._found.items() if trouble.until > now]
