"""When a line of a transcript was written."""

import time


def timestamp(at: float | None = None) -> str:
    """Return a time of `time.time()`, now by default, as the time of day with milliseconds: `22:04:05.678`."""
    at = time.time() if at is None else at
    return f"{time.strftime('%H:%M:%S', time.localtime(at))}.{int(at % 1 * 1000):03}"
