"""Sentry: jobs that have failed for good as issues, and traces from enqueue to end. Needs the extra `sentry`."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

try:
    import sentry_sdk
    from sentry_sdk.integrations.logging import ignore_logger
    from sentry_sdk.scope import Scope, use_isolation_scope
    from sentry_sdk.utils import event_from_exception
except ModuleNotFoundError as error:
    from leaseq import extras

    raise extras.missing("sentry", "leaseq.jobs.integrations.sentry", error) from error

from leaseq.jobs.aio import App as AsyncApp
from leaseq.jobs.app import App
from leaseq.jobs.call import Call
from leaseq.jobs.context import Context
from leaseq.jobs.signals import JobEvent
from leaseq.worker.hooks import logger

__all__ = ["install"]

_FLUSH_SECS: Final = 2.0
_MAX_BAGGAGE: Final = 1024
"""Bytes; the headers of a job are 4096 at most, and a longer trace must not keep it from being enqueued."""
_SCOPE: Final = "__leaseq_sentry_scope__"


def install(app: App | AsyncApp, *, retried: bool = False) -> None:
    """Report the failures of the jobs of an App to Sentry. Needs the extra `sentry`, and `sentry_sdk.init` in your program.

    A job that has failed for the last time becomes an issue, with the breadcrumbs and tags of its attempt; with `retried`,
    each failed attempt does. Each attempt is a transaction in the trace in which the job was enqueued. Sentry ignores the
    logger `leaseq.worker`, so that failures are not reported twice. A job in a separate process is reported with the text of
    its traceback.
    """
    ignore_logger(logger.name)
    app.headers(_trace)
    app.middleware(_transaction)
    for signal in ("failed", "retried") if retried else ("failed",):
        app.on(signal)(_report)
    app.on_shutdown(_flush)
    app.on_fork_shutdown(_flush)


def _trace(call: Call[Any]) -> Mapping[str, str]:
    """Return the headers that carry the current trace."""
    with sentry_sdk.start_span(op="queue.publish", name=call.function) as span:
        span.set_data("messaging.destination.name", call.options.queue)
        baggage = sentry_sdk.get_baggage() or ""
        headers = {
            "sentry-trace": sentry_sdk.get_traceparent() or "",
            "baggage": baggage if len(baggage) <= _MAX_BAGGAGE else "",
        }
        return {name: value for name, value in headers.items() if value}


@contextlib.contextmanager
def _transaction(ctx: Context) -> Iterator[None]:
    """Run an attempt in a separate scope and transaction. Its exception carries the scope to the receiver of the signal."""
    with sentry_sdk.isolation_scope() as scope:
        scope.clear_breadcrumbs()
        _describe(scope, ctx.id, ctx.queue, ctx.function, ctx.attempt)
        transaction = sentry_sdk.continue_trace(
            dict(ctx.headers),
            op="queue.process",
            name=ctx.function,
            source="task",
            origin="auto.queue.leaseq",
        )
        with sentry_sdk.start_transaction(transaction) as span:
            span.set_data("messaging.message.id", ctx.id)
            span.set_data("messaging.destination.name", ctx.queue)
            span.set_data("messaging.message.retry.count", ctx.attempt - 1)
            try:
                yield
            except BaseException as error:
                error.__dict__[_SCOPE] = scope  # also of an exception that is frozen
                raise
            span.set_status("ok")


def _report(event: JobEvent) -> None:
    """Send the failure of a job."""
    if event.error is None:
        return
    scope: Scope | None = getattr(event.error, _SCOPE, None)
    with sentry_sdk.isolation_scope() if scope is None else use_isolation_scope(scope) as here:
        if scope is None:
            _describe(here, event.id, event.queue, event.function, event.attempt)
        mechanism = {"type": "leaseq", "handled": False}
        options = sentry_sdk.get_client().options
        content, hint = event_from_exception(event.error, client_options=options, mechanism=mechanism)
        sentry_sdk.capture_event(content, hint=hint)


def _describe(scope: Scope, job_id: str, queue: str, function: str, attempt: int) -> None:
    if function:
        scope.set_transaction_name(function, source="task")
        scope.set_tag("leaseq.function", function)
    scope.set_tag("leaseq.queue", queue)
    scope.set_context("leaseq job", {"id": job_id, "queue": queue, "function": function, "attempt": attempt})


def _flush() -> None:
    """Send what waits, before a process ends."""
    sentry_sdk.flush(_FLUSH_SECS)
