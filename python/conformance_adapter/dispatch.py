"""The methods of the adapter protocol, with the public API of the Python clients.

The sync and async clients have the same names, so what is here fits both: a method says how to call, and what its answer
looks like; the answer itself is waited for by the sync or the async adapter.
"""

import asyncio
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple

import leaseq
from conformance_adapter import values
from conformance_adapter.messages import CAPABILITIES, PROTOCOL, Json, b64, unb64
from leaseq import Completion, FollowUp

Shape = Callable[[Any], Any]


class HarnessError(Exception):
    """The adapter cannot do what it was asked, whatever the client can."""


class Panic(BaseException):
    """As the exceptions for panics of libraries that are not written in Python: no Exception."""


def end_handler(how: str) -> object:
    """End a handler: normally, by an exception, or with a coroutine that is never awaited."""
    if how == "raise":
        raise RuntimeError("handler failed")
    if how == "panic":
        raise Panic
    if how == "cancel":
        raise asyncio.CancelledError
    return asyncio.sleep(0) if how == "unfinished" else None


def worker_options(args: Json) -> dict[str, Any]:
    """Return the arguments of a Worker, except its queues, from those of `work`."""
    retry_secs = values.secs(args.get("retry_ms", 0))
    return {
        "concurrency": args["concurrency"],
        "handle_signals": False,
        **({"lease_secs": values.secs(args["lease_ms"])} if "lease_ms" in args else {}),
        **({"grace_secs": values.secs(args["grace_ms"])} if "grace_ms" in args else {}),
        **({"backoff": lambda _attempt: retry_secs} if "retry_ms" in args else {}),
    }


class Plan(NamedTuple):
    """A call of the client, and the function that turns its answer, also the partial answer of an error, into a message."""

    run: Callable[[], Any]
    shape: Shape


class Session:
    """The queues of an actor, and its leases."""

    def __init__(self, module: ModuleType, registry: ModuleType, workers: ModuleType, server: Any) -> None:
        """`registry` is the module that lists queues, `workers` the module that lists live workers."""
        self._module = module
        self._registry = registry
        self._workers = workers
        self._server = server
        self._queues: dict[str, Any] = {}
        self._apps: dict[tuple[str, str], Any] = {}
        self._leases: dict[tuple[str, bytes, int], Any] = {}

    def open(self, handle: str, name: str, group: str | None) -> None:
        """Open a queue under a handle that is free."""
        if handle in self._queues:
            raise HarnessError(f"queue {handle!r} is open already")
        self._queues[handle] = self._module.WorkQueue(name, self._server, group=group)

    def queue(self, handle: str | None) -> Any:
        """The queue of this handle."""
        if handle is None or handle not in self._queues:
            raise HarnessError(f"queue {handle!r} is not open")
        return self._queues[handle]

    def worked_on(self, handle: str, args: Json) -> list[Any]:
        """The queues that `work` names."""
        return [self.queue(name) for name in (handle, *args.get("also", ()))]

    def app(self, handle: str | None, form: str = "json") -> Any:
        """The App whose jobs go to the queue of this handle."""
        queue = self.queue(handle)
        found = self._apps.get((queue.name, form))
        if found is None:
            made = importlib.import_module("leaseq.jobs" if self._module is leaseq else "leaseq.jobs.aio").App
            found = made(self._server, group=queue.group, queue=queue.name, format=form)
            self._apps[queue.name, form] = found
        return found

    def forget(self, handle: str) -> list[Any]:
        """Return what there is of this handle, to be closed: it is no longer open."""
        queue = self.queue(handle)
        del self._queues[handle]
        apps = [self._apps.pop(key) for key in list(self._apps) if key[0] == queue.name]
        return [queue, *apps]

    def forget_all(self) -> list[Any]:
        """Forget all handles. Return what there is of them, to be closed."""
        return [each for handle in list(self._queues) for each in self.forget(handle)]

    def together(self, handles: Sequence[str]) -> Any:
        """Several queues as one."""
        return self._module.WorkQueues([self.queue(handle) for handle in handles])

    def queues(self) -> Any:
        """The queues that are in the registry."""
        return self._registry.queues(self._server)

    def live_workers(self) -> Any:
        """The workers that say they live."""
        return self._workers.live_workers(self._server)

    def steer(self, worker: str, wish: str) -> Any:
        """Let a worker be quiet, resume or stop."""
        return getattr(self._workers, f"{wish}_worker")(worker, self._server)

    def leased(self, items: Sequence[Any]) -> Json:
        """Remember the leases; answers as messages do, with the queue's handle."""
        if not items:
            return {"queue": None, "leases": []}
        handle = next(name for name, queue in self._queues.items() if queue is items[0].queue)
        for item in items:
            self._leases[handle, item.id.encode(), item.token] = item
        return {"queue": handle, "leases": [values.lease(item) for item in items]}

    def held(self, handle: str | None, entry: Json) -> Any:
        """The lease of this id and token: the Python clients take no other."""
        try:
            return self._leases[handle or "", unb64(entry["id"]), int(entry["token"])]
        except KeyError:
            raise HarnessError(f"this actor was not given the lease {entry['token']}") from None


Method = Callable[[Session, str | None, Json], Plan]


def _add(session: Session, handle: str | None, args: Json) -> Plan:
    queue = session.queue(handle)
    items = [values.item(given) for given in args["items"]]
    options = values.options(args.get("options", {}))
    waiting = values.waiting(args)
    if len(items) != 1:
        many = queue.add_items_when_room if waiting else queue.add_items
        return Plan(lambda: many(items, **waiting, **options), _each_added)
    one = queue.add_item_when_room if waiting else queue.add_item
    return Plan(
        lambda: one(items[0], **waiting, **options),
        lambda answer: _each_added(answer if isinstance(answer, list) else [answer]),  # a list: of an error
    )


def _lease(session: Session, handle: str | None, args: Json) -> Plan:
    return _lease_of(session, session.queue(handle), args)


def _lease_any(session: Session, _: str | None, args: Json) -> Plan:
    return _lease_of(session, session.together(args["queues"]), args)


def _lease_of(session: Session, queue: Any, args: Json) -> Plan:
    count, secs, waiting = int(args.get("count", 1)), values.secs(args["duration_ms"]), values.waiting(args)
    waiting = waiting or {"block": False}
    return Plan(lambda: queue.lease_items(count, secs, **waiting), session.leased)


def _complete(session: Session, handle: str | None, args: Json) -> Plan:
    queue = session.queue(handle)
    only_current = args.get("only_current", False)
    if any(entry.keys() & {"result", "keep_ms"} for entry in args["items"]):
        finished = [_finished(session, handle, entry, only_current) for entry in args["items"]]
        return Plan(lambda: queue.complete_items(finished), lambda done: [one.completed for one in done])
    items = [session.held(handle, entry) for entry in args["items"]]
    return Plan(lambda: queue.complete_items(items, only_current=only_current), list)


def _hand_off(session: Session, handle: str | None, args: Json) -> Plan:
    queue = session.queue(handle)
    only_current = args.get("only_current", False)
    finished = [_finished(session, handle, entry, only_current) for entry in args["items"]]
    return Plan(
        lambda: queue.complete_items(finished),
        lambda done: [
            {"completed": one.completed, "added": [values.added(answer) for answer in one.added]}
            for one in done
        ],
    )


def _finished(session: Session, handle: str | None, entry: Json, only_current: bool) -> Completion:
    then: list[FollowUp] = [
        (
            session.queue(one["queue"]),
            values.item(one["item"]),
            values.options(one.get("options", {})),
        )
        for one in entry.get("then", [])
    ]
    return Completion(
        session.held(handle, entry),
        result=unb64(entry["result"]) if "result" in entry else None,
        keep=values.secs(entry["keep_ms"]) if "keep_ms" in entry else None,
        then=then,
        only_current=only_current,
    )


def _complete_and_lease(session: Session, handle: str | None, args: Json) -> Plan:
    queue, item = session.queue(handle), session.held(handle, args)
    secs, only_current = values.secs(args["duration_ms"]), args.get("only_current", False)

    def shape(answer: Any) -> Any:
        if isinstance(answer, list):  # of an error: what became of the first half
            return answer
        completed, leased = answer
        return {
            "completed": completed,
            "leases": session.leased([] if leased is None else [leased])["leases"],
        }

    return Plan(lambda: queue.complete_and_lease(item, secs, only_current=only_current), shape)


def _extend(session: Session, handle: str | None, args: Json) -> Plan:
    queue, items = session.queue(handle), [session.held(handle, entry) for entry in args["items"]]

    def shape(held: list[bool]) -> list[str | None]:
        return [
            values.micros(item.deadline) if is_held else None
            for item, is_held in zip(items, held, strict=False)
        ]

    return Plan(lambda: queue.extend_items(items, values.secs(args["duration_ms"])), shape)


def _release(session: Session, handle: str | None, args: Json) -> Plan:
    queue, items = session.queue(handle), [session.held(handle, entry) for entry in args["items"]]
    options: dict[str, Any] = {name: args[name] for name in ("uncounted", "error") if name in args}
    if "delay_ms" in args:
        options["delay"] = values.secs(args["delay_ms"])
    return Plan(lambda: queue.release_items(items, **options), list)


def _dead_letter(session: Session, handle: str | None, args: Json) -> Plan:
    queue, items = session.queue(handle), [session.held(handle, entry) for entry in args["items"]]
    return Plan(lambda: queue.dead_letter_items(items, error=args.get("error")), list)


def _outcome(session: Session, handle: str | None, args: Json) -> Plan:
    queue = session.queue(handle)
    return Plan(
        lambda: queue.outcomes(_ids(args)),
        lambda outcome_or_infos: [values.outcome(one) for one in outcome_or_infos],
    )


def _wait_outcome(session: Session, handle: str | None, args: Json) -> Plan:
    queue = session.queue(handle)
    waiting = values.waiting(args) or {"timeout": 0}
    return Plan(lambda: queue.outcome(unb64(args["id"]).decode(), **waiting), values.outcome)


def _of_ids(name: str) -> Method:
    def method(session: Session, handle: str | None, args: Json) -> Plan:
        call = getattr(session.queue(handle), name)
        return Plan(lambda: call(_ids(args)), list)

    return method


def _purge(session: Session, handle: str | None, args: Json) -> Plan:
    queue, older_than = session.queue(handle), values.secs(args.get("older_than_ms", 0))
    return Plan(lambda: queue.purge_items(_ids(args), older_than=older_than), list)


def _stats(session: Session, handle: str | None, _: Json) -> Plan:
    return Plan(session.queue(handle).stats, values.stats)


def _inspect(session: Session, handle: str | None, args: Json) -> Plan:
    queue = session.queue(handle)
    return Plan(
        lambda: queue.inspect_items(_ids(args)),
        lambda outcome_or_infos: [values.inspection(one) for one in outcome_or_infos],
    )


def _list(session: Session, handle: str | None, args: Json) -> Plan:
    queue = session.queue(handle)
    place = {
        "offset": int(args["offset"]),
        "limit": int(args["limit"]),
        "backward": args["order"] == "backward",
    }

    def shape(page: leaseq.Page) -> Json:
        listed = [{"id": b64(one.id.encode()), "time": values.micros(one.time)} for one in page.items]
        return {"total": page.total, "items": listed}

    return Plan(lambda: queue.list_items(args["state"], **place), shape)


def _configure(session: Session, handle: str | None, args: Json) -> Plan:
    queue, limits = session.queue(handle), {name: int(value) for name, value in args.items()}
    return Plan(lambda: queue.configure(**limits), _nothing)


def _delete(session: Session, handle: str | None, _: Json) -> Plan:
    return Plan(session.queue(handle).delete, lambda deleted: {"deleted": deleted})


def _pause(session: Session, handle: str | None, _: Json) -> Plan:
    return Plan(session.queue(handle).pause, _nothing)


def _resume(session: Session, handle: str | None, _: Json) -> Plan:
    return Plan(session.queue(handle).resume, _nothing)


def _light_clean(session: Session, handle: str | None, _: Json) -> Plan:
    kinds = ("promoted", "reclaimed", "died", "expired", "pruned")
    return Plan(session.queue(handle).light_clean, lambda done: {kind: getattr(done, kind) for kind in kinds})


def _deep_clean(session: Session, handle: str | None, args: Json) -> Plan:
    queue = session.queue(handle)
    return Plan(lambda: queue.deep_clean(dry_run=args["dry_run"]), lambda done: done.repairs)


def _queues(session: Session, _: str | None, __: Json) -> Plan:
    return Plan(session.queues, lambda found: {"queues": [f"{one.group}:{one.name}" for one in found]})


def _live_workers(session: Session, _: str | None, __: Json) -> Plan:
    return Plan(session.live_workers, lambda found: [values.live_worker(one) for one in found])


def _steer(session: Session, _: str | None, args: Json) -> Plan:
    return Plan(lambda: session.steer(args["worker"], args["wish"]), lambda alive: {"alive": alive})


def _ids(args: Json) -> list[str]:
    ids = map(values.item_id, args["ids"])
    return [one if isinstance(one, str) else one.decode("utf-8", "surrogateescape") for one in ids]


def _each_added(answers: Sequence[Any]) -> list[str | None]:
    return [values.added(answer, "full") for answer in answers]


def _nothing(_: None) -> Json:
    return {}


def held_answer(_item: Any) -> Json:
    """Return the answer to `held`: None, since the Python clients do not count leases down (LQ-CLIENT-3)."""
    return {"held": None}


METHODS: Final[dict[str, Method]] = {
    "add": _add,
    "lease": _lease,
    "lease_any": _lease_any,
    "complete": _complete,
    "hand_off": _hand_off,
    "complete_and_lease": _complete_and_lease,
    "extend": _extend,
    "release": _release,
    "dead_letter": _dead_letter,
    "outcome": _outcome,
    "wait_outcome": _wait_outcome,
    "promote": _of_ids("promote_items"),
    "revive": _of_ids("revive_items"),
    "purge": _purge,
    "remove": _of_ids("remove_items"),
    "stats": _stats,
    "inspect": _inspect,
    "list": _list,
    "configure": _configure,
    "delete": _delete,
    "pause": _pause,
    "resume": _resume,
    "light_clean": _light_clean,
    "deep_clean": _deep_clean,
    "queues": _queues,
    "live_workers": _live_workers,
    "steer": _steer,
}
"""Methods that both adapters share. Each has its own `hold`, `held`, `lost` and `pipeline`, and its own loop of a worker."""


OF_LOOPS: Final = frozenset({"work", "handed_out", "end_handlers", "leave_off", "finish"})


def pipeline_calls(args: Json) -> list[tuple[list[leaseq.Item], leaseq.AddOptions]]:
    """Items and options for each add_items of a pipeline."""
    return [
        ([values.item(given) for given in call["items"]], values.options(call.get("options", {})))
        for call in args["calls"]
    ]


def pipeline_answers(args: Json, replies: Sequence[Any]) -> list[list[str]]:
    """Return "added", "exists" or "full" for each item of each call. `replies` has a time of creation, 0 or -1 for each item."""
    flat = [answer for reply in replies for answer in (reply if isinstance(reply, list) else [reply])]
    words = iter(["full" if answer < 0 else "added" if answer else "exists" for answer in flat])
    return [[next(words) for _ in call["items"]] for call in args["calls"]]


JOB_WORKER: Final = "conformance_adapter.job_worker"


def job_worker(flavour: str) -> list[str]:
    """The command of the job worker program, with the modules that this adapter has."""
    settings = [
        f"{name}={os.environ[name]}"
        for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
        if name in os.environ
    ]
    return ["/usr/bin/env", *settings, sys.executable, "-m", JOB_WORKER, flavour]


def hello(language: str, flavour: str = "threads") -> Json:
    """Who this is. The sync and async adapters do all that the protocol has methods for."""
    from leaseq import _scripts

    scripts = (value for value in vars(_scripts).values() if isinstance(value, _scripts.Script))
    return {
        "protocol": PROTOCOL,
        "client": {"name": "leaseq", "version": leaseq.__version__, "language": language},
        "capabilities": list(CAPABILITIES),
        "scripts": {script.name: script.sha1 for script in scripts},
        "job_worker": job_worker(flavour),
    }
