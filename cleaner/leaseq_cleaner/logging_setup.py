"""Where the log of the cleaner goes."""

import logging

from leaseq.log_format import Format, formatter
from leaseq.log_lines import STDERR, LogLines


def set_up(form: Format, level: str) -> None:
    """Send what the cleaner logs to stderr. A reader that does not read holds no cleaning up."""
    handler = LogLines(STDERR, "leaseq-cleaner")
    handler.setFormatter(formatter(form))
    log = logging.getLogger("leaseq_cleaner")
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False
