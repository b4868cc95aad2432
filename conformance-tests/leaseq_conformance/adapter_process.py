"""One adapter process, spoken to in JSON lines (conformance-tests/ADAPTER.md).

with AdapterProcess("w1", ["python", "-m", "conformance_adapter.sync_client"], url) as process:
    process.open("q", "orders")
    waiting = process.start("q", "lease", duration_ms=30_000, wait_ms=None)
    process.call("q", "add", items=[{"id": b64(b"a"), "data": b64(b"")}])
    answer = waiting.answer()
"""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, ClassVar, Final, Literal, Self, cast

from leaseq_conformance.adapter_protocol import (
    MAX_LINE_BYTES,
    PROTOCOL,
    Json,
    MessageError,
    check_reply,
    check_request,
    described,
    quoted,
)
from leaseq_conformance.timestamp import timestamp
from leaseq_conformance.verdict import BrokenError, UnjudgedError

TIMEOUT_SECS: Final = 60.0
"""Longer than an answer takes on a busy machine; a call that waits is given its own time on top."""
STDERR_LINES: Final = 40
"""The number of last lines of stderr that are reported."""

Kind = Literal["ok", "error", "cancelled", "unsupported", "killed"]


class AdapterError(Exception):
    """No answer that can be judged. `verdict` is the outcome of the case."""

    verdict: ClassVar[Literal["error", "unknown"]]


class AdapterFaultError(AdapterError, BrokenError):
    """The adapter broke the adapter protocol, or its process ended: whatever the client did, this does not judge it."""

    verdict = "error"


class NoAnswerError(AdapterError, UnjudgedError):
    """No answer came within the time."""

    verdict = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: `value` is the result, the error, or the name of what is not supported.

    `killed`: the harness killed the process before it answered, and the call may have taken effect.
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
    """A request that has no answer yet. `called` and `answered` are time.monotonic_ns().

    `explain` adds to the message of a missing answer what the client did meanwhile.
    """

    def __init__(self, process: "AdapterProcess", request: Json) -> None:
        self.request = request
        self.called = time.monotonic_ns()
        self.answered: int | None = None
        self.explain: Callable[[], str] = lambda: ""
        self._process = process
        self._result: Answer | AdapterError | None = None
        self._done = threading.Event()

    @property
    def done(self) -> bool:
        """True if there is an answer, or certainly none will come."""
        return self._done.is_set()

    def answer(self, secs: float = TIMEOUT_SECS) -> Answer:
        """Wait for the answer. Raises AdapterFaultError, NoAnswerError."""
        if not self._done.wait(secs):
            raise NoAnswerError(
                f"{self._process.name}: no answer within {secs:g} s to request {described(self.request)}{self.explain()}"
            )
        if isinstance(self._result, AdapterError):
            raise self._result
        assert self._result is not None
        return self._result

    def cancel(self) -> "Pending":
        """Ask for the call to end; both are answered. Unsupported by clients that cannot end a single call."""
        return self._process.send({"op": "cancel", "call": self.request["id"]})

    def resolve(self, result: Answer | AdapterError) -> None:
        """For AdapterProcess alone: this is the answer."""
        if self._result is None:
            self.answered = time.monotonic_ns()
            self._result = result
            self._done.set()


class AdapterProcess:
    """A running adapter that has answered `hello`. Threads may share it. The adapter exits with the harness, which owns its stdin.

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
        hello_secs: float = TIMEOUT_SECS,
    ) -> None:
        self.name = name
        self.transcript: list[str] = []
        self._lock = threading.Lock()
        self._pending: dict[int, Pending] = {}
        self._last_id = 0
        self._final_answer: AdapterError | Answer | None = None
        self._stop_called = False
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `stop`)
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
            hello = {"op": "hello", "protocol": PROTOCOL, "url": url}
            self.hello: Json = self._greeted(self.send(hello | more).answer(hello_secs))
        except BaseException:
            self.kill()
            with contextlib.suppress(AdapterError):
                self.stop()
            raise

    @property
    def pid(self) -> int:
        """Of the adapter's process."""
        return self._process.pid

    @property
    def capabilities(self) -> frozenset[str]:
        """The capabilities that the client claims."""
        return frozenset(self.hello["capabilities"])

    def open(self, handle: str, name: str, group: str | None = None) -> Answer:
        """Open a queue under a handle for later calls."""
        return self.send({"op": "open", "queue": handle, "name": name, "group": group}).answer()

    def close(self, handle: str) -> Answer:
        """Close a queue; calls that wait on it are answered `cancelled` or with an error."""
        return self.send({"op": "close", "queue": handle}).answer()

    def start(self, handle: str | None, method: str, **args: Any) -> Pending:
        """Start a call. Raises MessageError for an invalid one, AdapterFaultError."""
        return self.send({"op": "call", "queue": handle, "method": method, "args": args})

    def call(self, handle: str | None, method: str, **args: Any) -> Answer:
        """Make a call that does not wait, and return its answer."""
        return self.start(handle, method, **args).answer()

    def send(self, message: Json) -> Pending:
        """Send a message with a new id. Raises MessageError, AdapterFaultError."""
        with self._lock:
            request = {"id": self._last_id + 1, **message}
            check_request(request)
            self._last_id += 1
            pending = Pending(self, request)
            if self._final_answer is not None:
                pending.resolve(self._final_answer)
                return pending
            self._pending[request["id"]] = pending
            self._note("->", line := json.dumps(request, separators=(",", ":")))
            assert self._process.stdin is not None
            # a process that is gone is noticed by the end of its output
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()
        return pending

    def stderr_size(self) -> int:
        """Return how many bytes it has written to stderr."""
        return 0 if self._log.closed else os.fstat(self._log.fileno()).st_size

    def stderr_lines(self, start: int = 0) -> list[str]:
        """The last lines that it wrote to stderr, after the first `start` bytes. None once it has ended."""
        if self._log.closed:
            return []
        # pread leaves the offset alone, which the process shares
        written = os.pread(self._log.fileno(), self.stderr_size() - start, start)
        return written.decode(errors="replace").splitlines()[-STDERR_LINES:]

    def kill(self) -> None:
        """Kill it with SIGKILL; calls without an answer are answered `killed`."""
        with self._lock:
            self._final_answer = self._final_answer or Answer("killed")
        self._process.kill()
        self._reader.join()

    def stop(self, secs: float = TIMEOUT_SECS) -> None:
        """Close its stdin and wait for its exit. Raises AdapterFaultError if it broke the protocol.

        Calls without an answer are answered `killed`. Does nothing if it has ended already.
        """
        with self._lock:
            if self._stop_called:
                return
            self._stop_called = True
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._reader.join(secs)
        if self._reader.is_alive():
            self._fail(self._fault(f"the adapter did not exit within {secs:g} s after the end of its input"))
        self._process.kill()
        self._reader.join()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self.transcript += [f"!! {line}" for line in self.stderr_lines()]
        self._log.close()
        if self.fault is not None:
            raise self.fault

    @property
    def fault(self) -> AdapterError | None:
        """The error of an adapter that broke the protocol; otherwise None."""
        return self._final_answer if isinstance(self._final_answer, AdapterError) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        else:
            with contextlib.suppress(AdapterError):
                self.stop()

    def _greeted(self, answer: Answer) -> Json:
        if answer.kind != "ok":
            raise self._fault(f"hello was answered {answer.kind}: {answer.value}")
        assert isinstance(answer.value, dict)
        return answer.value

    def _fault(self, message: str) -> AdapterFaultError:
        error = AdapterFaultError(f"{self.name}: {message}")
        error.stderr = tuple(self.stderr_lines())
        return error

    def _note(self, arrow: str, line: str) -> None:
        self.transcript.append(f"{timestamp()} {arrow} {line if len(line) <= 2000 else line[:2000] + '...'}")

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := self._process.stdout.readline(MAX_LINE_BYTES):
                self._receive(line)
        except ValueError as error:
            self._fail(self._fault(str(error)))
            self._process.kill()
            return
        code = self._process.wait()
        if self._stop_called and code == 0:
            self._fail(Answer("killed"))
        else:
            self._fail(self._fault(f"the adapter's process ended too early: {_exit(code)}"))

    def _receive(self, line: bytes) -> None:
        """Resolve the request that a line answers. Raises ValueError if it answers none."""
        with self._lock:
            self._note("<-", line.decode(errors="replace").rstrip("\n"))
        shown = quoted(line)
        if not line.endswith(b"\n"):
            raise MessageError(f"the adapter printed a line without a line break at its end: {shown}")
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise MessageError(
                f"the adapter printed a line that is no message: {shown} ({error}). "
                "stdout is for answers; print logs to stderr"
            ) from error
        number = reply.get("id") if isinstance(reply, dict) else None
        with self._lock:
            pending = self._pending.get(number) if isinstance(number, int) else None
        if pending is None:
            raise MessageError(f"the adapter printed an answer to nothing that was asked: {shown}")
        try:
            check_reply(reply, pending.request)
        except MessageError as error:
            asked = described(pending.request)
            raise MessageError(f"the answer to request {asked} is invalid: {error}; it is {shown}") from error
        with self._lock:
            del self._pending[pending.request["id"]]
        pending.resolve(self._answer(reply))

    def _answer(self, reply: Json) -> Answer | AdapterError:
        if "harness" in reply:
            return self._fault(f"the adapter says: {reply['harness']}")
        (kind,) = reply.keys() - {"id"}
        return Answer(cast("Kind", kind), reply[kind])

    def _fail(self, why: AdapterError | Answer) -> None:
        with self._lock:
            self._final_answer = self._final_answer or why
            for pending in self._pending.values():
                pending.resolve(self._final_answer)
            self._pending.clear()


def _exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"
