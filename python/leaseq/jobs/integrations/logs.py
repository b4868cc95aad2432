"""A log line for each attempt that has ended, as a web server writes one for each request."""

import logging

from leaseq.jobs.aio import App as AsyncApp
from leaseq.jobs.app import App
from leaseq.jobs.signals import JobEvent

__all__ = ["install"]


def install(app: App | AsyncApp, logger: logging.Logger | None = None) -> None:
    """Log each attempt at a job of an App when it has ended, with its duration, at level INFO.

    The logger is `leaseq.jobs.attempts` by default. A record has the attributes `item` (the id of the job), `queue`,
    `function`, `attempt`, `ended` ("succeeded", "retried" or "failed") and `seconds` (None if the attempt did not run); with
    `leaseq worker --log-format json` they are fields of the line.
    """
    chosen = logging.getLogger("leaseq.jobs.attempts") if logger is None else logger
    if logger is None and chosen.level == logging.NOTSET:
        chosen.setLevel(logging.INFO)  # `leaseq worker` shows warnings of others

    @app.on("succeeded", "retried", "failed")
    def log(event: JobEvent) -> None:
        extra = {
            "item": event.id,
            "queue": event.queue,
            "function": event.function,
            "attempt": event.attempt,
            "ended": event.signal,
            "seconds": None if event.seconds is None else round(event.seconds, 6),
        }
        took = "" if event.seconds is None else f" after {event.seconds:.3f} s"
        name = event.function or "an unknown function"
        chosen.info(
            "job %r of %s %s%s, attempt %d", event.id, name, event.signal, took, event.attempt, extra=extra
        )
