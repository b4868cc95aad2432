"""Runs the programs of a history against adapters and a real server, and records everything."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from leaseq_conformance.adapter_process import AdapterError, AdapterProcess, Answer, NoAnswerError
from leaseq_conformance.fault_proxy import FaultProxy
from leaseq_conformance.history.model_calls import FORGE
from leaseq_conformance.history.monitor_log import Witness
from leaseq_conformance.history.record import Call, History, Left, Sent, plain, restored
from leaseq_conformance.history.replies import decoded
from leaseq_conformance.history.workload import HOUR_MS
from leaseq_conformance.manifest import NAMES_BY_DIGEST, SCRIPTS
from leaseq_conformance.model.keyspace import read

if TYPE_CHECKING:
    import redis

    from leaseq_conformance.cases import Context
    from leaseq_conformance.fault_proxy import Action, Command, When
    from leaseq_conformance.history.workload import Program, Step

NAME: Final = "history"
PREFIX: Final = f"leaseq:{{{NAME}}}:{NAME}:"
FORGED: Final = """
for i, name in ipairs({'leased', 'delayed'}) do
  if redis.call('ZSCORE', KEYS[i], ARGV[1]) then
    redis.call('ZADD', KEYS[i], '1', ARGV[1])
    if redis.call('EXISTS', KEYS[3]) == 1 then
      redis.call('SETRANGE', KEYS[3], '10', struct.pack('<d', 0))
    end
    return name
  end
end
return 'no'
"""
"""Ends the time of an item as if it had been over since 1970; the state then says that the next time is not known."""


def run(program: Program, context: Context) -> History:
    """Run the programs side by side; ends when all have ended."""
    history = History(program.seed)
    with context.server.client() as client:
        for script in SCRIPTS.values():
            client.script_load(script.source)
        forge = client.script_load(FORGED)
        history.began = _time(client)
        names = {
            **NAMES_BY_DIGEST,
            forge: FORGE,
        }  # and what clients say that they send, whatever is wrong with it
        with Witness(client, names, PREFIX) as witness, FaultProxy(context.server.url, names) as proxy:
            recording = _Recording(history, context, proxy, names)
            parts = [_Part(recording, name, steps) for name, steps in program.actors.items()]
            threads = [threading.Thread(target=part.play, name=part.name) for part in parts]
            threads.append(threading.Thread(target=recording.forge, args=(client, forge, program.forger)))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            commands = proxy.commands
        history.ended = _time(client)
        history.ran = witness.ran
        if witness.fault is not None:
            history.complaints.append(f"unknown: the server's order is not known: {witness.fault!r}")
        history.sent = _sent(commands, recording.begun)
        _forget_unknown(history)
        history.left = _left(client)
    history.calls.sort(key=lambda call: call.number)
    return history


ACTIONS: Final[dict[str, Action]] = {"kill": "kill", "drop": "disconnect"}
"""Actions of the proxy, by the fault of a step."""


@dataclass
class _Recording:
    """State that all actors share.

    Attributes:
        names: scripts by their digests.
        `begun`: for each actor the calls that it made, and how many commands the proxy had seen before each.
        pace: counts the steps that actors made, for threads that keep pace with them.
    """

    history: History
    context: Context
    proxy: FaultProxy
    names: dict[str, str]
    begun: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    pace: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def begin(self, actor: str, method: str, args: dict[str, Any], fault: str = "") -> Call:
        """Record a call that starts now."""
        with self.lock:
            call = Call(next(self.numbers), actor, method, args, time.monotonic_ns(), fault=fault)
            self.history.calls.append(call)
            self.begun.setdefault(actor, []).append((call.number, len(self.proxy.commands)))
        return call

    def complain(self, text: str) -> None:
        with self.lock:
            self.history.complaints.append(text)

    def forge(self, client: redis.Redis, script: str, steps: list[Step]) -> None:
        """End times, one at each few calls of the actors."""
        keys = [PREFIX + name for name in ("leased", "delayed", "state")]
        for step in steps:
            self.pace.acquire()
            item_id = step.ids[0].encode()
            call = self.begin("forger", FORGE, {"id": item_id})
            reply = cast("bytes", client.evalsha(script, len(keys), *keys, item_id))
            call.end, call.answer = time.monotonic_ns(), {"ok": reply.decode()}


class _Part:
    """One actor's part."""

    def __init__(self, recording: _Recording, name: str, steps: list[Step]) -> None:
        self.name = name
        self._recording = recording
        self._steps = steps
        self._own: list[tuple[bytes, str]] = []
        self._actor: AdapterProcess | None = None

    def play(self) -> None:
        """Make every call; a killed process is followed by another."""
        try:
            for number, step in enumerate(self._steps):
                self._make(step, number)
                self._recording.pace.release()
            if self._actor is not None:
                self._actor.stop()
        except NoAnswerError as error:
            self._recording.complain(f"unknown: {error}")
        except (AdapterError, AssertionError) as error:
            self._recording.complain(f"error: {error}")
        finally:
            for _ in self._steps:  # the forger need not wait for who is gone
                self._recording.pace.release()
            if self._actor is not None:
                self._actor.kill()

    def _started(self) -> AdapterProcess:
        if self._actor is None:
            client_listener = self._recording.proxy.listener(self.name)
            context = self._recording.context
            self._actor = AdapterProcess(self.name, context.adapter, client_listener.url)
            self._recording.proxy.listener(self.name, kill=self._actor.kill)
            declared = self._actor.hello["scripts"]
            self._recording.names.update({digest: name for name, digest in declared.items()})
            self._recording.proxy.learn_scripts(declared)
            self._actor.open("q", NAME).ok  # noqa: B018 (raises where it is none)
        return self._actor

    def _make(self, step: Step, number: int) -> None:
        args = self._args(step, number)
        if args is None:
            return
        actor = self._started()
        if step.fault:
            do, when = step.fault.split()
            self._recording.proxy.add_breakpoint(self.name, step.script, cast("When", when), ACTIONS[do])
        call = self._recording.begin(self.name, step.method, args, step.fault)
        answer = actor.start("q", step.method, **plain(args)).answer(self._recording.context.patience)
        call.end = time.monotonic_ns()
        self._record_answer(call, answer)

    def _record_answer(self, call: Call, answer: Answer) -> None:
        if answer.kind == "killed":
            call.end = None
            actor, self._actor, self._own = self._actor, None, []  # the next process has no leases
            if actor is not None:
                actor.stop()
        elif answer.kind in {"ok", "error"}:
            call.answer = {answer.kind: restored(answer.value)}
        else:
            raise AssertionError(f"{call.actor}: {call.method} was answered {answer.kind} {answer.value}")
        if call.method in {"lease", "complete_and_lease"} and call.answer and "ok" in call.answer:
            self._own += [(lease["id"], lease["token"]) for lease in call.answer["ok"]["leases"]]

    def _args(self, step: Step, number: int) -> dict[str, Any] | None:
        """Return the arguments of a step; None if its actor has no lease yet that it could mean."""
        wait = {"wait_ms": step.wait_ms} if step.wait_ms else {}
        if step.method == "add":
            data = f"{self.name} {number}".encode()
            added = [{"id": item_id.encode(), "data": data} for item_id in step.ids]
            return {"items": added, **({"options": {"delay_ms": step.delay_ms}} if step.delay_ms else {})}
        if step.method == "lease":
            return {"count": step.count, "duration_ms": HOUR_MS + number, **wait}
        if step.method == "wait_outcome":
            return {"id": step.ids[0].encode(), **wait}
        if step.method in {"remove", "outcome"}:
            return {"ids": [item_id.encode() for item_id in step.ids]}
        if step.method == "light_clean":
            return {}
        return self._args_of_leases(step, number) if self._own else None

    def _args_of_leases(self, step: Step, number: int) -> dict[str, Any]:
        """Return the arguments of a step that names leases of its actor."""
        chosen = [self._own[-1 - place] for place in step.leases if place < len(self._own)] or self._own[-1:]
        items: list[dict[str, Any]] = [{"id": item_id, "token": token} for item_id, token in chosen]
        data = f"{self.name} {number}".encode()
        if step.method == "extend":
            return {"items": items, "duration_ms": HOUR_MS + number}
        if step.method == "complete_and_lease":
            return {**items[0], "only_current": step.flag, "duration_ms": HOUR_MS + number}
        if step.method == "release":
            delay: dict[str, Any] = {"delay_ms": step.delay_ms} if step.delay_ms else {}
            return {"items": items, "uncounted": step.flag, **delay}
        more: dict[str, Any] = {"keep_ms": HOUR_MS, "result": data} if step.keep else {}
        for entry, follow_up in zip(items, itertools.cycle(step.ids or ("",)), strict=False):
            entry.update(more)
            if step.method == "hand_off":
                entry["then"] = [{"queue": "q", "item": {"id": follow_up.encode(), "data": data}}]
        return {"items": items, "only_current": step.flag}


def _time(client: redis.Redis) -> int:
    secs, micros = client.time()
    return int(secs) * 1_000_000 + int(micros)


def _sent(commands: list[Command], begun: dict[str, list[tuple[int, int]]]) -> list[Sent]:
    """The calls of scripts that came through the proxy, each with the call of its actor during which it came."""
    found = []
    for place, command in enumerate(commands):
        if command.name not in {"EVALSHA", "EVAL"}:
            continue
        call = max((number for number, seen in begun.get(command.client, []) if seen <= place), default=0)
        count = int(command.arguments[2])
        sent = Sent(
            number=command.number,
            actor=command.client,
            call=call,
            script=command.script or command.arguments[1].decode("ascii", "replace"),
            keys=[key.removeprefix(PREFIX.encode()).decode() for key in command.arguments[3 : 3 + count]],
            argv=list(command.arguments[3 + count :]),
            passed=command.sent,
            delivered=command.delivered is not None,
        )
        if command.reply is not None and command.reply.startswith(b"-"):
            sent.error = command.reply[1:].decode(errors="replace").strip()
        elif command.reply is not None:
            sent.reply = decoded(command.reply)
        found.append(sent)
    return found


def _forget_unknown(history: History) -> None:
    """Forget calls that were answered NOSCRIPT: the server tells of them, and ran nothing."""
    for sent in [one for one in history.sent if one.error and one.error.startswith("NOSCRIPT")]:
        history.sent.remove(sent)
        same_run = next(
            (ran for ran in history.ran if (ran.script, ran.argv) == (sent.script, sent.argv)), None
        )
        if same_run is not None:
            history.ran.remove(same_run)


def _left(client: redis.Redis) -> dict[str, Left]:
    stored = read(client, PREFIX)
    left = {}
    for item_id, data in stored.items.items():
        states = stored.where(item_id)
        record = stored.record(item_id)
        where = states[0] if len(states) == 1 else f"in {len(states)} states"
        numbers = (record.attempt, record.token) if record else (0, 0)
        left[item_id.decode()] = Left(where, data, *numbers)
    return left
