"""Forms of a log line: text for people, or one JSON object. For `leaseq worker` and the cleaner."""

import json
import logging
from datetime import UTC, datetime
from typing import Final, Literal

Format = Literal["text", "json"]

_EXTRA: Final = ("item", "function", "attempt")


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, logger, message; of a job also item (its id), function and attempt."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: value for name in _EXTRA if (value := getattr(record, name, None)) is not None}
        if record.exc_text:
            fields["exception"] = record.exc_text
        elif record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def formatter(form: Format) -> logging.Formatter:
    """Return the formatter of a form. A line of text starts with time, level and logger."""
    return (
        JsonFormatter()
        if form == "json"
        else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
