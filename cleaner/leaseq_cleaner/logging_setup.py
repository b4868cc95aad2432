"""Where the log of the cleaner goes."""

import logging
import sys

from leaseq.log_format import Format, formatter


def set_up(form: Format, level: str) -> None:
    """Send what the cleaner logs to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(form))
    log = logging.getLogger("leaseq_cleaner")
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False
