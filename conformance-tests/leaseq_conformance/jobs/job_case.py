"""Runs the steps of one case of jobs."""

from __future__ import annotations

import itertools
import json
import time
from typing import TYPE_CHECKING, Any, Final

import redis

from leaseq_conformance.jobs import payload
from leaseq_conformance.jobs.change_watch import ChangeWatch
from leaseq_conformance.jobs.job_queue import JobQueue
from leaseq_conformance.scenarios import key_inspector
from leaseq_conformance.scenarios.values import MismatchError, Saved, filled, match
from leaseq_conformance.verdict import FailedError
from leaseq_conformance.worker_program import GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from leaseq_conformance.adapter_pool import CaseSession
    from leaseq_conformance.adapter_process import Pending
    from leaseq_conformance.fault_proxy import Command
    from leaseq_conformance.worker_program import WorkerPrograms

Step = dict[str, Any]
POLL_SECS: Final = 0.02
LOOK_SECS: Final = 20.0
"""Longer than a worker program takes to start and to do a thing on a busy machine."""
QUIET_SECS: Final = 0.3
"""More than ten times as long as a function pauses between two marks."""
HOUR_MS: Final = 3_600_000
CRON: Final = "work.cron"
ONE_WORKER: Final[dict[str, Any]] = {"schedules": False, "count": 1, "fresh": False}
ENDED: Final = frozenset({"result", "failure", "dead"})


class JobCaseRunner:
    """One run of one case.

    Args:
        session: its actors.
        client: the runner's own connection.
        patience: seconds that an answer, and whatever is waited for, may take.
        programs: the worker programs.
        folder: for files that functions write.
    """

    def __init__(
        self,
        session: CaseSession,
        client: redis.Redis,
        patience: float,
        programs: WorkerPrograms,
        folder: Path,
    ) -> None:
        self._session = session
        self._client = client
        self._patience = patience
        self._look_secs = min(patience, LOOK_SECS)
        self._programs = programs
        self._folder = folder
        self._queues: dict[str, JobQueue] = {}
        self._saved: Saved = {}
        self._calls: dict[str, Pending] = {}
        self._watches: dict[str, ChangeWatch] = {}

    def play(self, body: Mapping[str, Any]) -> None:
        """Run all steps.

        Raises:
            FailedError: an expectation is not met.
            BrokenError: a worker program has ended.
            leaseq_conformance.adapter_process.AdapterError: an actor gave no answer that could be judged.
        """
        try:
            self._play_steps(body["steps"])
        finally:
            for watch in self._watches.values():
                watch.close()

    def _play_steps(self, steps: Sequence[Step]) -> None:
        for number, step in enumerate(steps, 1):
            self._session.note(f"step {number}: {json.dumps(step)}")
            kind = next(name for name in KINDS if name in step)
            try:
                KINDS[kind](self, self._plain(step) if kind in STARTING else self._plain(step[kind]))
            except (MismatchError, payload.PayloadError, ValueError, redis.ResponseError) as error:
                raise FailedError(f"step {number}: {error}", self._session.transcript()) from error

    def _plain(self, value: Any) -> Any:
        """A value with sums, joined and long texts written out."""
        if isinstance(value, dict) and value.keys() == {"$sum"}:
            return sum(int(filled(part, self._saved)) for part in value["$sum"])
        if isinstance(value, dict) and value.keys() == {"$join"}:
            return "".join(str(filled(part, self._saved)) for part in value["$join"])
        if isinstance(value, dict) and value.keys() == {"$file"}:
            return str(self._folder / value["$file"])
        if isinstance(value, dict) and value.keys() == {"$repeat"}:
            text, times = value["$repeat"]
            return text * times
        if isinstance(value, dict):
            return {name: self._plain(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self._plain(part) for part in value]
        return value

    def _queue(self, step: Step) -> JobQueue:
        name = step.get("queue", "work")
        if name not in self._queues:
            self._queues[name] = JobQueue(self._client, name)
        return self._queues[name]

    def _eventually(self, check: Callable[[], None]) -> None:
        """Look until the check holds, or can no longer."""
        deadline = time.monotonic() + self._look_secs
        while True:
            is_last = time.monotonic() > deadline
            try:
                check()
            except (MismatchError, payload.PayloadError, ValueError):
                self._programs.check()
                if is_last:
                    raise
                time.sleep(POLL_SECS)
            else:
                return

    # What the suite does

    def add(self, step: Step) -> None:
        given = filled(step, self._saved)
        if "hex" in given:
            data = bytes.fromhex(given["hex"])
        elif "data" in given:
            data = given["data"].encode()
        else:
            data = payload.encode(given["envelope"], given.get("form", "json"))
        options = given.get("options", {})
        self._queue(step).add(given["id"], data, options, given.get("headers", {}))

    def lease(self, step: Step) -> None:
        job_id, token = self._queue(step).lease()
        if job_id != step["id"]:
            raise MismatchError(f"the item {job_id} is next, expected {step['id']}")
        self._saved[f"token_{job_id}"] = int(token)

    def complete(self, step: Step) -> None:
        content = payload.encode(filled(step["content"], self._saved), step.get("form", "json"))
        self._queue(step).complete(step["id"], content)

    def release(self, step: Step) -> None:
        self._queue(step).release(step["id"], step.get("options", {}))

    def revive(self, step: Step) -> None:
        """Revive an item if it is dead."""
        self._queue(step).revive(step["id"])

    def add_schedule(self, step: Step) -> None:
        """Put the item of a schedule, whose slots up to a time are over, in place of the stored schedule."""
        data = json.dumps({"v": 1, "until": int(filled(step["until"], self._saved))})
        self._queue({"queue": CRON}).replace(step["id"], data.encode(), {"max_attempts": 0})

    def workers(self, step: Step) -> None:
        """Have worker programs run from now on."""
        self._programs.need(**{**ONE_WORKER, **step})

    def cancel(self, step: Step) -> None:
        self._queue(step).cancel(step["id"])

    def put(self, step: Step) -> None:
        value = json.dumps(filled(step["value"], self._saved))
        self._client.set(self._queue(step).prefix + step["key"], value, px=HOUR_MS)

    def enter(self, step: Step) -> None:
        """Enter a name into a set."""
        self._client.sadd(self._queue(step).prefix + step["key"], step["name"])

    def forge(self, step: Step) -> None:
        queue = self._queue(step)
        for job_id, after_ms in step.get("refused", {}).items():
            queue.make_refused(job_id, after_ms)
        for job_id, after_ms in step.get("due", {}).items():
            key_inspector.forge(self._client, queue.prefix, "due", job_id, after_ms)
            self._client.rpush(queue.prefix + "wake", "1")  # who waits knows the old time

    def now(self, name: str) -> None:
        """Save the server's time and the hour that it is in, in milliseconds."""
        now = JobQueue(self._client, "work").now_ms()
        self._saved |= {name: now, f"{name}_hour": now // HOUR_MS * HOUR_MS}

    # What the client does

    def call(self, step: Step) -> None:
        self._check(step, self._begin(step["call"], step))

    def start(self, step: Step) -> None:
        self._calls[step["as"]] = self._begin(step["start"], step)

    def await_(self, step: Step) -> None:
        self._check(step, self._calls[step["await"]])

    def _begin(self, call: str, step: Step) -> Pending:
        actor, _, method = call.partition(".")
        name = step.get("queue", "work")
        adapter = self._session.adapter(actor)
        for handle in {name, *(stage["queue"] for stage in step["args"].get("then", ()) if "queue" in stage)}:
            if handle not in adapter.opened:
                adapter.process.open(handle, handle, GROUP)
                adapter.opened.add(handle)
        return self._session.start(actor, name, method, filled(step["args"], self._saved))

    def _check(self, step: Step, pending: Pending) -> None:
        got = pending.answer(self._patience)
        wanted = "error" if "error" in step else "ok"
        if got.kind != wanted:
            raise MismatchError(f"answered {got.kind}: {got.value}, expected {wanted} {step.get(wanted, '')}")
        match(step.get(wanted, {}), got.value, self._saved)

    # What is seen of it

    def outcome(self, step: Step) -> None:
        """Wait for the end of a job, and look at its result or failure."""
        queue = self._queue(step)

        def look() -> None:
            found = queue.outcome(step["id"])
            if found.kind in ENDED and found.kind != step["kind"]:
                raise FailedError(
                    f"{step['id']} has ended: {found.kind} {found.content!r}, expected {step['kind']}",
                    self._session.transcript(),
                )
            match(step["kind"], found.kind, self._saved, f"the outcome of {step['id']}")

        self._eventually(look)
        found = queue.outcome(step["id"])
        if "attempt" in step:
            match(step["attempt"], found.attempt, self._saved, f"the attempt of {step['id']}")
        if "content" in step:
            form, content = payload.read(found.content, "result")
            match(step.get("form", "json"), form, self._saved, "the format of the result (LQ-JOB-8)")
            match(step["content"], content, self._saved, "the result")
            _match_lacks(step, content, "the result")
        self._match_failure(step, found.content.decode("utf-8", "backslashreplace"))

    def item(self, step: Step) -> None:
        """Wait until an item has this state and attempt, and look at the rest."""
        queue = self._queue(step)
        waited = {name: step[name] for name in ("state", "attempt") if name in step}

        def look() -> None:
            match(waited, queue.inspect(step["id"]), self._saved, step["id"])

        self._eventually(look)
        found = queue.inspect(step["id"])
        match(step.get("is", {}), found, self._saved, step["id"])
        self._match_failure(step, found["error"])
        if "headers" in step:
            match(step["headers"], queue.headers(step["id"]), self._saved, f"the headers of {step['id']}")
        if "due_ms" in step:
            least, most = step["due_ms"]
            due = found["time"] // 1000 - queue.now_ms()
            if not least <= due <= most:
                raise MismatchError(f"{step['id']} is due in {due} ms, expected {least} to {most}")

    def _match_failure(self, step: Step, text: str) -> None:
        if "failure" in step:
            found = payload.failure(text)
            match(step["failure"], found, self._saved, "the failure")
            _match_lacks(step, found, "the failure")

    def stored(self, step: Step) -> None:
        """Look at the data of an item: an envelope, or a schedule's."""
        data = self._queue(step).data(step["id"])
        if "schedule" in step:
            match(step["schedule"], json.loads(data), self._saved, "the schedule")
            return
        form, found = payload.read(data, "envelope")
        if "form" in step:
            match(step["form"], form, self._saved, "the format")
        match(step["envelope"], found, self._saved, "the envelope")
        _match_lacks(step, found, "the envelope")

    def note(self, step: Step) -> None:
        """Wait until a note says this, or is not there."""
        queue = self._queue(step)

        def look() -> None:
            found, life_ms = queue.note(step["key"])
            match(step["is"], found, self._saved, step["key"])
            least, most = step.get("ttl_ms", (life_ms, life_ms))
            if not least <= life_ms <= most:
                raise MismatchError(f"{step['key']} stays for {life_ms} ms, expected {least} to {most}")

        self._eventually(look)

    def watch(self, keys: list[str]) -> None:
        """Start to wait for changes of jobs."""
        for key in keys:
            self._watches[key] = ChangeWatch(self._client, self._queue({}).prefix + key)

    def changed(self, step: Step) -> None:
        """Wait until a change that a step before this one watches was published."""
        life_ms = self._watches[step["key"]].life_ms(self._look_secs)
        least, most = step["ttl_ms"]
        if not least <= life_ms <= most:
            raise MismatchError(f"{step['key']} stays for {life_ms} ms, expected {least} to {most}")

    def slots(self, step: Step) -> None:
        """Wait until these slots of a schedule, from one time to another, have jobs."""
        start = f"cron:{step['schedule']}:"
        first, last = (int(filled(step[name], self._saved)) for name in ("from", "to"))
        wanted = sorted(filled(step["are"], self._saved))

        def look() -> None:
            ids = [found for found in self._queue(step).finished() if found.startswith(start)]
            found = sorted(int(job_id.removeprefix(start)) for job_id in ids)
            within = [slot for slot in found if first <= slot <= last]
            if within != wanted:
                raise MismatchError(f"the slots with jobs are {within}, expected {wanted} (LQ-JOB-14)")

        self._eventually(look)

    def marks(self, name: str) -> None:
        """Wait until a function writes to its file."""

        def look() -> None:
            if self._size(name) == 0:
                raise MismatchError(f"the function writes nothing to the file {name}")

        self._eventually(look)

    def marks_end(self, name: str) -> None:
        """Wait until a function writes no more to its file."""

        def look() -> None:
            before = self._size(name)
            time.sleep(QUIET_SECS)
            if self._size(name) != before:
                raise MismatchError(f"the function still writes to the file {name}")

        self._eventually(look)

    def _size(self, name: str) -> int:
        path = self._folder / name
        return path.stat().st_size if path.exists() else 0

    def sent(self, step: Step) -> None:
        """Wait until `count` commands about an id were sent, or a list of commands, in one transaction or one after the other."""

        def look() -> None:
            found = [each for each in self._session.proxy.commands_of(step["by"]) if _was_run(each)]
            if "together" in step:
                _match_transaction(step, found)
            elif "order" in step:
                _match_order(step, found)
            elif "longest" in step:
                _match_longest(step, found)
            else:
                about = [each for each in found if each.is_named(step["command"]) and _names(each, step)]
                match(step["count"], len(about), self._saved, f"the number of {step['command']}")

        self._eventually(look)


def _was_run(command: Command) -> bool:
    """Return whether the server has run a command: it did not ask for the script."""
    return command.reply is not None and not command.reply.startswith(b"-NOSCRIPT")


def _names(command: Command, step: Step) -> bool:
    """Return whether a command has this text, or each of several, in one of its words."""
    about = step["about"]
    texts = about if isinstance(about, list) else [about]
    return all(any(text.encode() in word for word in command.arguments) for text in texts)


def _match_transaction(step: Step, commands: Iterable[Command]) -> None:
    wanted = set(step["together"])
    by_connection = sorted(commands, key=lambda each: (each.connection, each.number))
    for _, group in itertools.groupby(by_connection, key=lambda each: each.connection):
        inside: set[str] | None = None
        for command in group:
            if command.name == "MULTI":
                inside = set()
            elif command.name == "EXEC":
                if inside is not None and wanted <= inside:
                    return
                inside = None
            elif inside is not None and _names(command, step):
                inside |= {command.label, command.name}
    raise MismatchError(f"no transaction has {' and '.join(step['together'])} about {step['about']}")


def _match_order(step: Step, commands: Iterable[Command]) -> None:
    labels = [each.label for each in commands if _names(each, step)]
    wanted = list(step["order"])
    for label in labels:
        if wanted and label == wanted[0]:
            wanted.pop(0)
    if wanted:
        raise MismatchError(
            f"{step['by']} sent {labels} about {step['about']}, expected {step['order']} in this order"
        )


def _match_longest(step: Step, commands: Iterable[Command]) -> None:
    about = step["about"].encode()
    sizes = [len(word) for each in commands for word in each.argv if each.script != "lease" and about in word]
    longest = max(sizes, default=0)
    if not 0 < longest <= step["longest"]:
        raise MismatchError(
            f"the longest word of {step['by']} has {longest} bytes, expected {step['longest']} at most"
        )


def _match_lacks(step: Step, found: Mapping[str, Any], what: str) -> None:
    for name in step.get("lacks", ()):
        if name in found:
            raise MismatchError(f"{what} has {name}: {found[name]!r}, expected none")


KINDS: Final[dict[str, Callable[[JobCaseRunner, Any], None]]] = {
    "add": JobCaseRunner.add,
    "lease": JobCaseRunner.lease,
    "complete": JobCaseRunner.complete,
    "release": JobCaseRunner.release,
    "cancel": JobCaseRunner.cancel,
    "revive": JobCaseRunner.revive,
    "add_schedule": JobCaseRunner.add_schedule,
    "workers": JobCaseRunner.workers,
    "put": JobCaseRunner.put,
    "enter": JobCaseRunner.enter,
    "forge": JobCaseRunner.forge,
    "now": JobCaseRunner.now,
    "call": JobCaseRunner.call,
    "start": JobCaseRunner.start,
    "await": JobCaseRunner.await_,
    "outcome": JobCaseRunner.outcome,
    "item": JobCaseRunner.item,
    "stored": JobCaseRunner.stored,
    "note": JobCaseRunner.note,
    "watch": JobCaseRunner.watch,
    "changed": JobCaseRunner.changed,
    "slots": JobCaseRunner.slots,
    "marks": JobCaseRunner.marks,
    "marks_end": JobCaseRunner.marks_end,
    "sent": JobCaseRunner.sent,
}
STARTING: Final = frozenset({"call", "start", "await"})
"""Steps whose first word is the name of a call; others have all that they say below it."""
