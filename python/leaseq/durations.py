"""Durations as people write them: 30, 500ms, 30s, 5m, 2h, 7d. For the command line and the options of jobs."""

import re
from typing import Final

from leaseq.errors import BadArgumentError

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?) *([a-z]*)", re.ASCII)


def seconds_of(text: str) -> float:
    """Return the seconds of a duration; a number without a unit is in seconds. Raises BadArgumentError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or match[2] not in _SECONDS:
        raise BadArgumentError(f"{text!r} is no duration; write 30s, 500ms, 5m, 2h or 7d")
    return float(match[1]) * _SECONDS[match[2]]
