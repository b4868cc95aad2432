"""Log lines: for people, or one JSON object each."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

Format = Literal["text", "json"]


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, message."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def set_up(form: Format, level: str) -> None:
    """Send what the cleaner logs to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if form == "json" else text)
    log = logging.getLogger("leaseq_cleaner")
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False
