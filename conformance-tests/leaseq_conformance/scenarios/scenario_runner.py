"""Runs the steps of one scenario."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.adapter_process import NoAnswerError
from leaseq_conformance.fault_proxy import ANY_SCRIPT, COMPLETION, Breakpoint, FaultProxyError, Refusal
from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.scenarios import key_inspector, values, workers
from leaseq_conformance.verdict import FailedError, SkippedError, UnjudgedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import redis

    from leaseq_conformance.adapter_pool import CaseSession
    from leaseq_conformance.adapter_process import Answer, Pending
    from leaseq_conformance.fault_proxy import Action

Step = dict[str, Any]
POLL_SECS: Final = 0.02
MAX_STALL_SECS: Final = 1.0
"""A harness that was later than this says nothing of a client that was late."""
QUEUELESS: Final = ("lease_any", "live_workers", "queues")
BLOCKING: Final = ("BLPOP", "BLMOVE")
ACTIONS: Final[dict[str, Action]] = {"hold": "hold", "drop": "disconnect", "kill": "kill"}
"""Actions of the proxy on a command that a step stops, by the word of the step."""


class ScenarioRunner:
    """One run of one scenario.

    Args:
        session: its actors and queues.
        client: the runner's own connection.
        patience: seconds that an answer, and whatever is waited for, may take.
        order: who goes first in races: 0 or 1.
    """

    def __init__(self, session: CaseSession, client: redis.Redis, patience: float, order: int) -> None:
        self.session = session
        self.client = client
        self.patience = patience
        self._order = order
        self._saved: values.Saved = {}
        self._calls: dict[str, tuple[str, str, Pending]] = {}
        self._points: dict[str, Breakpoint] = {}
        self._refusals: dict[str, Refusal] = {}
        self._marks: dict[str, int] = {}
        self._remembered: dict[str, Any] = {}
        self._damaged = False

    def play(self, body: Mapping[str, Any]) -> None:
        """Run all steps, and look at the invariants after each.

        Raises:
            FailedError: an expectation is not met, or an invariant is broken.
            SkippedError: it restarts a server that is not the suite's.
            leaseq_conformance.adapter_process.AdapterError: an actor gave no answer that could be judged.
        """
        queues = body.get("queues", {"q": "q"})
        for queue, group in queues.items():
            self.session.declare(queue, group)
        for number, step in enumerate(body["steps"], 1):
            self.session.note(f"step {number}: {json.dumps(step)}")
            try:
                self._step(step)
            except values.MismatchError as error:
                raise self._failed(f"step {number}: {error}") from error
            except FaultProxyError as error:
                raise self._failed(f"step {number}: {error}") from error
            except FailedError as error:
                raise self._failed(f"step {number}: {error}", error.difference) from error
            if not self._damaged:
                self._look(number, queues)

    def _step(self, step: Step) -> None:
        kind = next(name for name in KINDS if name in step)
        KINDS[kind](self, step)

    def _look(self, number: int, queues: Mapping[str, str]) -> None:
        for queue in queues:
            found = key_inspector.broken(self.client, self.session.prefix(queue))
            if found:
                raise self._failed(f"step {number} broke the invariants of {queue}: {'; '.join(found)}")

    def _failed(self, message: str, difference: str = "") -> FailedError:
        return FailedError(message, self.session.transcript(), difference)

    # Calls

    def _begin(self, call: str, step: Step) -> Pending:
        actor, _, method = call.partition(".")
        args = values.filled(values.plain(step.get("args", {})), self._saved)
        queue = None if method in QUEUELESS else step.get("queue", "q")
        for follow_up in (then for item in args.get("items", []) for then in item.get("then", [])):
            self.session.adapter(actor, follow_up["queue"])
        for other in args.get("also", ()):
            self.session.adapter(actor, other)
        return self.session.start(actor, queue, method, args)

    def call(self, step: Step) -> None:
        got = self._begin(step["call"], step).answer(self.patience)
        self._check(step, got)

    def _check(self, step: Step, got: Answer) -> None:
        wanted = next((kind for kind in ("ok", "error", "cancelled") if kind in step), "ok")
        if got.kind != wanted:
            raise FailedError(
                f"answered {got.kind}: {values.shown(got.value)}, expected {wanted} {step.get(wanted, '')}"
            )
        if wanted in step and wanted != "cancelled":
            values.match(values.plain(step[wanted]), got.value, self._saved)

    def start(self, step: Step) -> None:
        actor = step["start"].partition(".")[0]
        self._calls[step["as"]] = (actor, step.get("queue", "q"), self._begin(step["start"], step))

    def await_(self, step: Step) -> None:
        try:
            got = self._calls[step["await"]][2].answer(self.patience)
        except NoAnswerError as error:
            raise FailedError(f"{step['await']} had no answer in {self.patience:.0f} s") from error
        self._check(step, got)

    def waiting(self, step: Step) -> None:
        call = self._calls[step["waiting"]][2]
        if call.done:
            raise FailedError(f"{step['waiting']} no longer waits: {call.answer()}")

    def cancel(self, step: Step) -> None:
        actor, queue, call = self._calls[step["cancel"]]
        if call.cancel().answer(self.patience).kind == "unsupported":
            self.session.close(actor, queue)  # clients that cannot end one call end it with the queue

    def close(self, step: Step) -> None:
        self.session.close(step["close"], step.get("queue", "q"))

    def race(self, step: Step) -> None:
        racers = step["race"]
        actors = [racer["call"].partition(".")[0] for racer in racers]
        points = [self.session.proxy.add_breakpoint(actor, ANY_SCRIPT) for actor in actors]
        calls = [self._begin(racer["call"], racer) for racer in racers]
        for point in points:
            point.wait(self.patience)
        order = (0, 1) if self._order == 0 else (1, 0)
        for place, index in zip(("first", "second"), order, strict=True):
            points[index].resume()
            self.session.note(f"{actors[index]} goes {place}")
            turn = racers[index][place]
            self._check(turn, calls[index].answer(self.patience))
            if "keys" in turn:
                self.keys({**racers[index], "keys": turn["keys"]})

    # Faults

    def kill(self, step: Step) -> None:
        self.session.kill(step["kill"])

    def stop(self, step: Step) -> None:
        action = ACTIONS[step.get("do", "hold")]
        point = self.session.proxy.add_breakpoint(
            step["stop"], step["command"], step["when"], action, step.get("nth", 1)
        )
        self._points[step.get("as", "")] = point

    def reached(self, step: Step) -> None:
        self._points[step["reached"]].wait(self.patience)

    def let_go(self, step: Step) -> None:
        self._points[step["let_go"]].resume()

    def drop(self, step: Step) -> None:
        self._points[step["drop"]].disconnect()

    def kill_at(self, step: Step) -> None:
        point = self._points[step["kill_at"]]
        point.wait(self.patience)
        self.session.kill(point.client)
        point.disconnect()

    def refuse(self, step: Step) -> None:
        """From now on these commands get an error, until the actor is accepted again."""
        refusal = self._refusals[step["refuse"]] = Refusal(step["refuse"], step["command"], step["error"])
        self.session.proxy.add(refusal)

    def accept(self, step: Step) -> None:
        self.session.proxy.remove(self._refusals.pop(step["accept"]))

    def cut(self, step: Step) -> None:
        """Reset the connections of a client. The server has let go of them: no blocked one takes what comes next."""
        addresses = set(self.session.proxy.reset(step["cut"]))
        deadline = time.monotonic() + self.patience
        while addresses & {each["addr"] for each in self.client.client_list()}:
            if time.monotonic() > deadline:
                raise FailedError(
                    f"the server did not notice in {self.patience:.0f} s that {step['cut']} was cut"
                )
            time.sleep(POLL_SECS)

    def flush_scripts(self, _step: Step) -> None:
        self.client.script_flush()

    def load_scripts(self, _step: Step) -> None:
        """No client is answered NOSCRIPT, so that each call is one command."""
        for script in SCRIPTS.values():
            self.client.script_load(script.source)

    def restart_server(self, _step: Step) -> None:
        if not self.session.server.restarts:
            raise SkippedError("the server is not the suite's to restart")
        self.client.close()
        self.session.restart_server()

    # Keys

    def forge(self, step: Step) -> None:
        for what, times in step["forge"].items():
            for item_id, after_ms in times.items():
                try:
                    key_inspector.forge(self.client, self._prefix(step), what, item_id, after_ms)
                except ValueError as error:
                    raise FailedError(str(error)) from error

    def damage(self, step: Step) -> None:
        self._damaged = True
        key_inspector.damage(self.client, self._prefix(step), values.filled(step["damage"], self._saved))

    def sound(self, _step: Step) -> None:
        self._damaged = False

    def keys(self, step: Step) -> None:
        found = key_inspector.picture(key_inspector.read(self.client, self._prefix(step)))
        try:
            values.match(step["keys"], found, self._saved, "the queue")
            _match_empty(step["keys"], found)
        except values.MismatchError as error:
            difference = "\n".join(
                f"{name}: expected {wanted!r}\n{' ' * len(name)}   found {found.get(name)!r}"
                for name, wanted in step["keys"].items()
                if wanted != found.get(name)
            )
            raise FailedError(str(error), difference=difference) from error

    def eventually(self, step: Step) -> None:
        deadline = time.monotonic() + self.patience
        while True:
            last = time.monotonic() > deadline
            try:
                self.keys({**step, "keys": step["eventually"]})
            except FailedError:
                if last:
                    raise
                time.sleep(POLL_SECS)
            else:
                return

    def remember(self, step: Step) -> None:
        self._remembered[step["remember"]] = key_inspector.raw(self.client, self._prefix(step))

    def unchanged(self, step: Step) -> None:
        before, now = self._remembered[step["unchanged"]], key_inspector.raw(self.client, self._prefix(step))
        changed = [key for key in before if before[key] != now[key]]
        if changed:
            raise FailedError(
                f"{', '.join(changed)} changed", difference="\n".join(f"changed: {key}" for key in changed)
            )

    # Looking on

    def blocked(self, step: Step) -> None:
        actor = step["blocked"]
        deadline = time.monotonic() + self.patience
        while not any(self._blocks(actor, name) for name in BLOCKING):
            if time.monotonic() > deadline:
                raise FailedError(f"{actor} did not block in {self.patience:.0f} s")
            time.sleep(POLL_SECS)

    def _blocks(self, actor: str, name: str) -> bool:
        return any(
            command.sent and command.reply is None for command in self.session.proxy.commands_of(actor, name)
        )

    def answered(self, step: Step) -> None:
        """The client has the reply to its last completion: a client that blocks beside it may not yet."""
        actor, deadline = step["answered"], time.monotonic() + self.patience
        while not (sent := self.session.proxy.commands_of(actor, COMPLETION)) or sent[-1].delivered is None:
            if time.monotonic() > deadline:
                raise FailedError(f"{actor} got no reply to a completion in {self.patience:.0f} s")
            time.sleep(POLL_SECS)

    def mark(self, step: Step) -> None:
        """For counts of what is sent from now on."""
        commands = self.session.proxy.commands_of(step["of"])
        self._marks[step["mark"]] = commands[-1].number if commands else 0

    def sent(self, step: Step) -> None:
        began = time.monotonic()
        deadline = began + step.get("within_ms", self.patience * 1000) / 1000
        while (count := self._count(step)) < step.get("at_least", 0) and time.monotonic() < deadline:
            time.sleep(POLL_SECS)
        least, most = int(step.get("at_least", 0)), int(step.get("at_most", count))
        if "count" in step:
            least = most = step["count"]
        if least <= count <= most:
            return
        if "within_ms" in step and self.session.longest_stall(began) > MAX_STALL_SECS:
            raise UnjudgedError("the machine did not keep up")
        raise FailedError(f"{step['sent']} sent {step['command']} {count} times")

    def _count(self, step: Step) -> int:
        since = self._marks.get(step.get("since", ""), 0)
        commands = self.session.proxy.commands_of(step["sent"], step["command"])
        return sum(command.number > since for command in commands)

    def registered(self, step: Step) -> None:
        """The client enters a queue behind a call, so it may come a little later."""
        deadline = time.monotonic() + self.patience
        while not key_inspector.is_registered(self.client, self.session.prefix(step["registered"])):
            if wrong := key_inspector.misregistered(self.client):
                raise FailedError(f"the registry of queues has {', '.join(wrong)}, no <group>:<name>")
            if time.monotonic() > deadline:
                raise FailedError(f"{step['registered']} is not in the registry of queues")
            time.sleep(POLL_SECS)

    def registry(self, step: Step) -> None:
        key_inspector.fill_registry(self.client, step["registry"], step["more"])

    def spoil_registry(self, _step: Step) -> None:
        key_inspector.spoil_registry(self.client)

    def announced(self, step: Step) -> None:
        """Exactly one worker of the queue is announced, as the rules say, and says these things of itself."""
        entry, began = key_inspector.entry(self._prefix(step)), time.monotonic()
        wanted = step["announced"]
        more = {name: step[name] for name in ("without", "beside", "named", "living_ms") if name in step}
        within = step.get("within_ms", self.patience * 1000) / 1000
        try:
            self._until(lambda: workers.check(self.client, entry, wanted, **more), within)
        except values.MismatchError as error:
            if "within_ms" in step and self.session.longest_stall(began) > MAX_STALL_SECS:
                raise UnjudgedError(f"the machine did not keep up: {error}") from error
            raise

    def unannounced(self, _step: Step) -> None:
        self._until(lambda: workers.check_none(self.client), self.patience)

    def _until(self, check: Callable[[], None], secs: float) -> None:
        deadline = time.monotonic() + secs
        while True:
            last = time.monotonic() > deadline
            try:
                check()
            except values.MismatchError:
                if last:
                    raise
                time.sleep(POLL_SECS)
            else:
                return

    def workers(self, step: Step) -> None:
        workers.write(self.client, step["workers"], step.get("before", 0), passed=step.get("passed", False))

    def spoil_workers(self, _step: Step) -> None:
        workers.spoil(self.client)

    def time(self, step: Step) -> None:
        self._saved[step["time"]] = str(key_inspector.now(self.client))

    def wait_until(self, step: Step) -> None:
        """For what only time can show: no verdict hangs on how much later it is when this is over."""
        end = int(values.filled(step["wait_until"], self._saved)) + step["plus_ms"] * 1000
        while (left := end - key_inspector.now(self.client)) >= 0:
            time.sleep(left / 1_000_000 + POLL_SECS)

    def not_before(self, step: Step) -> None:
        bound = int(values.filled(step["not_before"], self._saved)) + step["plus_ms"] * 1000
        now = key_inspector.now(self.client)
        if now < bound:
            raise FailedError(f"{(bound - now) / 1000:.0f} ms too early by the server's clock")

    def _prefix(self, step: Step) -> str:
        return self.session.prefix(step.get("queue", "q"))


KINDS: Final = {
    "await": ScenarioRunner.await_,
    **{
        name: getattr(ScenarioRunner, name)
        for name in (
            *("call", "start", "race", "waiting", "cancel", "close"),
            *(
                "stop",
                "reached",
                "let_go",
                "drop",
                "kill_at",
                "kill",
                "refuse",
                "accept",
                "cut",
                "flush_scripts",
                "load_scripts",
                "restart_server",
            ),
            *("forge", "damage", "sound", "keys", "eventually", "remember", "unchanged"),
            *(
                "answered",
                "blocked",
                "mark",
                "sent",
                "registered",
                "registry",
                "spoil_registry",
                "time",
                "wait_until",
                "not_before",
            ),
            *("announced", "unannounced", "workers", "spoil_workers"),
        )
    },
}
"""The method that runs each kind of step, by the field that names the kind."""


def _match_empty(expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Raise MismatchError if something is there where an empty object is expected: other objects may have more fields."""
    for name, wanted in expected.items():
        if wanted == {} and found[name]:
            raise values.MismatchError(f"the queue.{name} is {values.shown(found[name])}, expected none")
