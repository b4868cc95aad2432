"""The methods of job clients, with the public API of `leaseq.jobs`, which is imported once one of them is called."""

import math
from typing import Any, Final

from conformance_adapter import values
from conformance_adapter.dispatch import Method, Plan, Session
from conformance_adapter.messages import Json

NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf}
"""Numbers that JSON does not have."""


def _enqueue(session: Session, handle: str | None, args: Json) -> Plan:
    app = session.app(handle, args.get("form", "json"))
    options = _options(args)
    if "id" in args:
        options["id"] = args["id"]
    function = app.function(args["function"]).with_options(**options)
    given, named = value(args.get("args", [])), value(args.get("kwargs", {}))
    if "then" not in args:
        return Plan(lambda: function.enqueue(*given, **named), _added)

    def enqueue_chain() -> Any:
        chain = app.chain(function.call(*given, **named))
        for stage in args["then"]:
            queue = {"queue": session.queue(stage["queue"]).name} if "queue" in stage else {}
            step = app.function(stage["function"]).with_options(**_options(stage), **queue)
            chain = chain.then(step.partial(*value(stage.get("args", []))))
        return chain.enqueue()

    return Plan(enqueue_chain, lambda chain: _added(chain.stages[0]))


def _added(handle: Any) -> Json:
    return {"id": handle.id, "added": handle.added}


def _job(session: Session, handle: str | None, args: Json) -> Plan:
    job = session.app(handle).handle(args["id"], session.queue(handle).name)
    return Plan(job.info, _info)


def _info(info: Any) -> Json:
    progress = None if info.progress is None else [part for part in info.progress if part is not None]
    return {
        "status": info.status,
        "result": info.result,
        "error": info.error,
        "progress": progress,
        "worker": info.worker,
    }


def _job_result(session: Session, handle: str | None, args: Json) -> Plan:
    job = session.app(handle).handle(args["id"], session.queue(handle).name)
    timeout = values.waiting(args)["timeout"]
    return Plan(lambda: job.result(timeout), lambda result: {"ended": "result", "result": result})


def _cancel_job(session: Session, handle: str | None, args: Json) -> Plan:
    job = session.app(handle).handle(args["id"], session.queue(handle).name)
    return Plan(job.cancel, lambda cancelled: {"cancelled": cancelled})


METHODS: Final[dict[str, Method]] = {
    "enqueue": _enqueue,
    "job": _job,
    "job_result": _job_result,
    "cancel_job": _cancel_job,
}


def ending(error: BaseException) -> Json | None:
    """Return the answer of `job_result` for a job without a result; None for an error of another kind."""
    from leaseq.jobs import JobCancelled, JobFailed, ResultNotKept

    if isinstance(error, JobFailed):
        return {"ended": "failure", "kind": error.type, "message": error.message}
    if isinstance(error, JobCancelled):
        return {"ended": "cancelled"}
    if isinstance(error, ResultNotKept):
        return {"ended": "not_kept"}
    return {"ended": "waiting"} if isinstance(error, TimeoutError) else None


def value(given: Any) -> Any:
    """An argument of a job: JSON, but for numbers that it does not have."""
    if isinstance(given, dict):
        if given.keys() == {"$number"}:
            return NUMBERS[given["$number"]]
        return {name: value(part) for name, part in given.items()}
    return [value(part) for part in given] if isinstance(given, list) else given


def _options(args: Json) -> dict[str, Any]:
    """Options of a job, as the Python clients name them."""
    given = args.get("options", {})
    options = {
        name: values.secs(given[of_message])
        for of_message, name in (
            ("delay_ms", "delay"),
            ("expires_in_ms", "expires"),
            ("keep_ms", "keep"),
            ("timeout_ms", "timeout"),
        )
        if of_message in given
    }
    if "priority" in given:
        options["priority"] = int(given["priority"])
    if "max_attempts" in given:
        options["retries"] = int(given["max_attempts"]) - 1
    if "headers" in given:
        options["headers"] = given["headers"]
    return options
