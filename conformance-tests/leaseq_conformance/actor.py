"""An actor: one adapter process, spoken to in JSON lines (conformance-tests/ADAPTER.md).

with Actor("w1", ["python", "-m", "leaseq_conformance.adapters.python_sync"], url) as actor:
    actor.open("q", "orders")
    waiting = actor.start("q", "lease", duration_ms=30_000, wait_ms=None)
    actor.call("q", "add", items=[{"id": b64(b"a"), "data": b64(b"")}])
    answer = waiting.answer()
"""

import contextlib
import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, ClassVar, Final, Literal, Self, cast

from leaseq_conformance.cases import BrokenError, UnjudgedError
from leaseq_conformance.messages import LONGEST_LINE, PROTOCOL, Json, MessageError, check_reply, check_request

PATIENCE_SECS: Final = 60.0
"""Longer than an answer takes on a machine that stalls; a call that waits is given its own time on top."""

Kind = Literal["ok", "error", "cancelled", "unsupported", "killed"]


class ActorError(Exception):
    """No answer that could be judged. `verdict` is what this makes of the case."""

    verdict: ClassVar[Literal["error", "unknown"]]


class AdapterFaultError(ActorError, BrokenError):
    """The adapter broke the adapter protocol, or its process ended: whatever the client did, this is no verdict on it."""

    verdict = "error"


class NoAnswerError(ActorError, UnjudgedError):
    """The time for an answer is up: the client may hang, or the machine may be slow."""

    verdict = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call came to: `value` is what it answered, its error, or the name of what is not supported.

    `killed`: the process was killed on purpose before it answered, and the call may have taken effect.
    """

    kind: Kind
    value: Any = None

    @property
    def ok(self) -> Any:
        """The answer of a call that is to succeed. Raises AssertionError."""
        assert self.kind == "ok", f"{self.kind}: {self.value}"
        return self.value

    @property
    def error(self) -> Json:
        """The error of a call that is to fail. Raises AssertionError."""
        assert self.kind == "error", f"{self.kind}: {self.value}"
        assert isinstance(self.value, dict)
        return self.value


class Pending:
    """A message without its answer yet. `called` and `answered` are time.monotonic_ns()."""

    def __init__(self, actor: "Actor", request: Json) -> None:
        self.request = request
        self.called = time.monotonic_ns()
        self.answered: int | None = None
        self._actor = actor
        self._got: Answer | ActorError | None = None
        self._done = threading.Event()

    @property
    def done(self) -> bool:
        """Whether there is an answer, or certainly none will come."""
        return self._done.is_set()

    def answer(self, secs: float = PATIENCE_SECS) -> Answer:
        """Wait for the answer. Raises AdapterFaultError, NoAnswerError."""
        if not self._done.wait(secs):
            raise NoAnswerError(f"{self._actor.name}: no answer within {secs:g} s to {_short(self.request)}")
        if isinstance(self._got, ActorError):
            raise self._got
        assert self._got is not None
        return self._got

    def cancel(self) -> "Pending":
        """Ask for the call to end; answered for both. Unsupported by clients that cannot end one call."""
        return self._actor.send({"op": "cancel", "call": self.request["id"]})

    def settle(self, got: Answer | ActorError) -> None:
        """For the actor alone: this is the answer."""
        if self._got is None:
            self.answered = time.monotonic_ns()
            self._got = got
            self._done.set()


class Actor:
    """A running adapter, greeted. Threads may share it. Its process ends with it, and with whoever started it.

    Raises AdapterFaultError, NoAnswerError.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        url: str,
        *,
        cluster: bool = False,
        environment: Mapping[str, str] | None = None,
        hello_secs: float = PATIENCE_SECS,
    ) -> None:
        self.name = name
        self.transcript: list[str] = []
        self._guard = threading.Lock()
        self._pending: dict[int, Pending] = {}
        self._last = 0
        self._ended: ActorError | Answer | None = None
        self._is_over = False
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the actor)
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=None if environment is None else dict(environment),
            )
        except OSError as error:
            self._log.close()
            raise AdapterFaultError(f"{name}: the adapter cannot be started: {error}") from error
        self._reader = threading.Thread(target=self._read, name=f"adapter {name}", daemon=True)
        self._reader.start()
        try:
            more = {"cluster": True} if cluster else {}
            greeting = {"op": "hello", "protocol": PROTOCOL, "url": url}
            self.hello: Json = self._greeted(self.send(greeting | more).answer(hello_secs))
        except BaseException:
            self.kill()
            with contextlib.suppress(ActorError):
                self.end()
            raise

    @property
    def pid(self) -> int:
        """Of the adapter's process."""
        return self._process.pid

    @property
    def capabilities(self) -> frozenset[str]:
        """What the client claims to do."""
        return frozenset(self.hello["capabilities"])

    def open(self, handle: str, name: str, group: str | None = None) -> Answer:
        """Open a queue, which calls then name by its handle."""
        return self.send({"op": "open", "queue": handle, "name": name, "group": group}).answer()

    def close(self, handle: str) -> Answer:
        """Close a queue; what waits on it is answered `cancelled` or with an error."""
        return self.send({"op": "close", "queue": handle}).answer()

    def start(self, handle: str | None, method: str, **args: Any) -> Pending:
        """Begin a call. Raises MessageError for one that is none, AdapterFaultError."""
        return self.send({"op": "call", "queue": handle, "method": method, "args": args})

    def call(self, handle: str | None, method: str, **args: Any) -> Answer:
        """Make a call that does not wait, and give its answer."""
        return self.start(handle, method, **args).answer()

    def send(self, message: Json) -> Pending:
        """Send a message; its id is given here. Raises MessageError, AdapterFaultError."""
        with self._guard:
            request = {"id": self._last + 1, **message}
            check_request(request)
            self._last += 1
            pending = Pending(self, request)
            if self._ended is not None:
                pending.settle(self._ended)
                return pending
            self._pending[request["id"]] = pending
            self._note("->", line := json.dumps(request, separators=(",", ":")))
            assert self._process.stdin is not None
            # a process that is gone is told by its output, which ends
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()
        return pending

    def kill(self) -> None:
        """Kill -9; calls without an answer are answered `killed`."""
        with self._guard:
            self._ended = self._ended or Answer("killed")
        self._process.kill()
        self._reader.join()

    def end(self, secs: float = PATIENCE_SECS) -> None:
        """Tell the adapter that it is over, and wait for its process. Raises AdapterFaultError for what it did wrong.

        Calls without an answer are answered `killed`. Nothing where it is over already.
        """
        with self._guard:
            if self._is_over:
                return
            self._is_over = True
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._reader.join(secs)
        if self._reader.is_alive():
            self._fail(AdapterFaultError(f"{self.name}: the adapter did not exit at the end of its input"))
        self._process.kill()
        self._reader.join()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.seek(0)
        self.transcript += [f"!! {line}" for line in self._log.read().decode(errors="replace").splitlines()]
        self._log.close()
        if self.fault is not None:
            raise self.fault

    @property
    def fault(self) -> ActorError | None:
        """What the adapter did wrong, if it has."""
        return self._ended if isinstance(self._ended, ActorError) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.end()
        else:
            with contextlib.suppress(ActorError):
                self.end()

    def _greeted(self, answer: Answer) -> Json:
        if answer.kind != "ok":
            raise AdapterFaultError(f"{self.name}: hello was answered {answer.kind}: {answer.value}")
        assert isinstance(answer.value, dict)
        return answer.value

    def _note(self, arrow: str, line: str) -> None:
        self.transcript.append(f"{arrow} {line if len(line) <= 2000 else line[:2000] + '...'}")

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := self._process.stdout.readline(LONGEST_LINE):
                self._take(line)
        except ValueError as error:
            self._fail(AdapterFaultError(f"{self.name}: {error}"))
            self._process.kill()
            return
        code = self._process.wait()
        if self._is_over and code == 0:
            self._fail(Answer("killed"))
        else:
            self._fail(AdapterFaultError(f"{self.name}: the adapter ended by itself, with exit code {code}"))

    def _take(self, line: bytes) -> None:
        """Raises ValueError for what answers nothing."""
        with self._guard:
            self._note("<-", line.decode(errors="replace").rstrip("\n"))
        if not line.endswith(b"\n"):
            raise MessageError(f"a line without an end: {line[:200]!r}")
        reply = json.loads(line)
        number = reply.get("id") if isinstance(reply, dict) else None
        with self._guard:
            pending = self._pending.get(number) if isinstance(number, int) else None
        if pending is None:
            raise MessageError(f"an answer to nothing that was asked: {line[:200]!r}")
        check_reply(reply, pending.request)
        with self._guard:
            del self._pending[pending.request["id"]]
        pending.settle(_read_reply(self.name, reply))

    def _fail(self, why: ActorError | Answer) -> None:
        with self._guard:
            self._ended = self._ended or why
            for pending in self._pending.values():
                pending.settle(self._ended)
            self._pending.clear()


def _read_reply(name: str, reply: Json) -> Answer | ActorError:
    if "harness" in reply:
        return AdapterFaultError(f"{name}: the adapter says: {reply['harness']}")
    (kind,) = reply.keys() - {"id"}
    return Answer(cast("Kind", kind), reply[kind])


def _short(message: Json) -> str:
    text = json.dumps(message)
    return text if len(text) <= 300 else text[:300] + "..."
