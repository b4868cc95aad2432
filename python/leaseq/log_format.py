"""Forms of a log line: text for people, or one JSON object. For `leaseq worker` and the cleaner."""

import json
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, Literal

Format = Literal["text", "json"]

_EXTRA: Final = ("item", "queue", "function", "attempt", "ended", "seconds")

job_fields: ContextVar[Mapping[str, object]] = ContextVar("leaseq fields of the job", default={})  # noqa: B039 (never changed)
"""The fields that each line has which the job that runs here writes."""


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, logger, message; of a job also item (its id), queue, function and attempt.

    A line that the code of a job writes, to any logger, has these too.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= job_fields.get()
        fields |= {name: value for name in _EXTRA if (value := getattr(record, name, None)) is not None}
        if record.exc_text:
            fields["exception"] = record.exc_text
        elif record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = record.stack_info
        return json.dumps(fields, default=str)


def formatter(form: Format) -> logging.Formatter:
    """Return the formatter of a form. A line of text starts with time, level and logger."""
    return (
        JsonFormatter()
        if form == "json"
        else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
