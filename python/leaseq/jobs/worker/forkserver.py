"""The process from which those of the jobs are forked, and what runs in these.

A worker has an event loop and threads, and a process that is forked in the middle of them may wait without end for a lock
that no thread opens. This one was forked before either started and has neither.
"""

import asyncio
import contextlib
import inspect
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NoReturn

import msgspec
from setproctitle import setproctitle

from leaseq import signals
from leaseq.callables import awaited
from leaseq.jobs.errors import JobTimeout
from leaseq.jobs.middleware import Middleware, run_in_loop, with_runner
from leaseq.jobs.middleware import run as run_within
from leaseq.jobs.worker import process_life
from leaseq.jobs.worker.execution import JobExecution, JobResult, LeasedJob, PreparedJob, UnknownFunction
from leaseq.jobs.worker.framing import frame
from leaseq.jobs.worker.process_group import LOOK_SECS, ProcessGroup, end_all
from leaseq.jobs.worker.time_limit import raise_late, within
from leaseq.log_format import job_fields
from leaseq.worker.hooks import logger

Hook = Callable[[], Any]

ORDER: Final = struct.Struct(">BI")
START: Final = 1
KILL: Final = 2
"""The worker's messages: one of these, and the number of a job. With START comes one end of a pair of sockets."""

AGAIN_SECS: Final = 0.1
"""Seconds after which an alarm comes again: forked beside a main thread, CPython 3.14 can miss the first one."""

EXIT_SECS: Final = 5.0
"""Seconds that the exit functions and hooks of the process of a job may take."""

EXIT: Final = struct.Struct(">Ii")
"""A process that ended: its number, and its exit code, or the negative of a signal."""


class Started(msgspec.Struct, tag="started", frozen=True):
    """The process that runs a job. It leads a process group."""

    pid: int


class Progress(msgspec.Struct, tag="progress", frozen=True):
    """The progress of a job."""

    done: Any
    total: float | None


class Ended(msgspec.Struct, tag="ended", frozen=True):
    """The end of a job."""

    ending: JobResult


Message = Started | Progress | Ended


def run(wire: socket.socket, execution: JobExecution, shutdown: Sequence[Hook], worker: int) -> NoReturn:
    """Fork a process for each job, which calls `shutdown` after it, until the process `worker` is gone."""
    code = 1
    try:
        setproctitle("leaseq worker: forks")
        _ForkServer(wire, _wake_on_signals(), execution, shutdown, worker).work()
        code = 0
    except BaseException:  # noqa: BLE001 (no caller is left)
        sys.excepthook(*sys.exc_info())
    finally:
        process_life.end(code)


class _ForkServer:
    def __init__(
        self,
        wire: socket.socket,
        woken: int,
        execution: JobExecution,
        shutdown: Sequence[Hook],
        worker: int,
    ) -> None:
        self._wire = wire
        self._woken = woken
        self._execution = execution
        self._shutdown = shutdown
        self._worker = worker
        self._groups: dict[int, ProcessGroup] = {}

    def work(self) -> None:
        # the wire may stay open when the worker is gone: what a job left running can have the other end
        while os.getppid() == self._worker:
            readable = self._wait()
            if self._woken in readable:
                os.read(self._woken, 4096)
            if readable != {self._wire.fileno()}:
                self._reap()
            if self._wire.fileno() in readable and not self._order():
                break
        end_all(list(self._groups.values()))

    def _wait(self) -> set[int]:
        """Wait for an order, or until processes end; return what can be read."""
        poll = select.poll()  # select.select takes no number from 1024 on
        poll.register(self._wire, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        lingers = any(group.lingers for group in self._groups.values())
        return {number for number, _ in poll.poll(LOOK_SECS * 1000 if lingers else None)}

    def _order(self) -> bool:
        """Carry out the worker's orders. Return false if the worker is gone."""
        try:
            frame, ends, _, _ = socket.recv_fds(self._wire, ORDER.size, 1)
            while 0 < len(frame) < ORDER.size and (more := self._wire.recv(ORDER.size - len(frame))):
                frame += more
        except ConnectionError:  # it died and had not heard all
            return False
        if len(frame) < ORDER.size:
            return False
        what, number = ORDER.unpack(frame)
        if what == START:
            self._start(number, socket.socket(fileno=ends[0]))
        elif number in self._groups:
            self._groups[number].kill()
        return True

    def _start(self, number: int, end: socket.socket) -> None:
        try:
            pid, _ = process_life.fork_process()
        except OSError:  # there is no room for it: as if it had been killed
            end.close()
            self._report_exit(number, -signal.SIGKILL)
            return
        if pid == 0:
            self._wire.close()
            _perform(end, self._execution, self._shutdown)
        end.close()
        self._groups[number] = ProcessGroup(pid)

    def _reap(self) -> None:
        for number, group in list(self._groups.items()):
            code = group.ended()
            if code is not None:
                del self._groups[number]
                self._report_exit(number, code)

    def _report_exit(self, number: int, code: int) -> None:
        with contextlib.suppress(OSError):  # the worker is gone, which is seen next
            self._wire.sendall(EXIT.pack(number, code))


def _wake_on_signals() -> int:
    """Be woken by the ends of children and of the worker. What is sent to all processes is for the worker alone."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    # a handler that does nothing: unlike an ignored signal, it is not handed on to programs that a job starts
    signals.handle_from_now_on((signal.SIGCHLD, signal.SIGHUP), bool)
    process_life.start(bool)
    process_life.signal_at_end_of_parent(signal.SIGHUP)
    return woken


def _perform(end: socket.socket, execution: JobExecution, shutdown: Sequence[Hook]) -> NoReturn:
    """Run one job, from the worker's message to the report of its end."""
    code = 1
    try:
        signals.handle_from_now_on((signal.SIGHUP,), bool)
        process_life.start(bool)  # the worker says when to end
        _end_with_parent()
        end.sendall(frame(msgspec.msgpack.encode(Started(os.getpid()))))
        last = frame(msgspec.msgpack.encode(Ended(_ended(end, execution))))
        with _for_exit_secs(lambda: end.sendall(last)):
            for hook in shutdown:
                _call_hook(hook)
            process_life.finish()
        end.sendall(last)
        code = 0
    except ConnectionError:  # the worker is gone, and this process would be killed in a moment
        pass
    except BaseException:  # noqa: BLE001 (the worker learns that it ended)
        sys.excepthook(*sys.exc_info())
    finally:
        process_life.flush()
        os._exit(code)


@contextlib.contextmanager
def _for_exit_secs(report: Callable[[], object]) -> Iterator[None]:
    """If this block takes longer than EXIT_SECS, call `report` and end the process: the job has ended, however its process does."""

    def give_up(_: int) -> NoReturn:
        signal.setitimer(signal.ITIMER_REAL, 0)
        logger.warning(
            "a job has ended, and the exit functions and hooks of its process not %g s later", EXIT_SECS
        )
        report()
        process_life.flush()
        os._exit(0)

    signals.handle_from_now_on((signal.SIGALRM,), give_up)
    signal.setitimer(signal.ITIMER_REAL, EXIT_SECS, AGAIN_SECS)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)


def _ended(end: socket.socket, execution: JobExecution) -> JobResult:
    lease = msgspec.msgpack.decode(_read(end), type=LeasedJob)

    def report(done: Any, total: float | None) -> None:
        end.sendall(frame(msgspec.msgpack.encode(Progress(done, total))))

    ready = execution.ready(lease, report)
    if isinstance(ready, UnknownFunction):  # it was decorated when this process had started
        return JobResult(failed=True, text=f"UnknownFunction: {ready.reason}; restart the worker", dead=True)
    if isinstance(ready, JobResult):
        return ready
    setproctitle(f"leaseq job: {ready.function.name} {lease.id}")
    job_fields.set(ready.fields)
    try:
        value = _called(ready, execution.middleware)
    except BaseException as error:  # noqa: BLE001 (told)
        return execution.failed(lease, ready, error)
    try:
        return execution.done(lease, ready, value)
    except Exception as error:  # noqa: BLE001 (told)
        return execution.refused(lease, error)


def _call_hook(hook: Hook) -> None:
    """Call a hook. Its failure does not change the end of the job."""
    try:
        answer = hook()
        if inspect.isawaitable(answer):
            asyncio.run(awaited(answer))
    except Exception:  # noqa: BLE001 (told)
        logger.exception("the hook %r failed", getattr(hook, "__name__", hook))


def _called(ready: PreparedJob, middleware: Sequence[Middleware] = ()) -> Any:
    """Call the function, and await what it returns if that can be; in its middleware, within its time limit."""
    started, context = time.monotonic(), ready.context
    call = partial(ready.function.function, *ready.args, **ready.kwargs)
    if ready.function.is_async or context is None or not middleware:
        value = _called_within_limit(call, ready.timeout)
    else:
        with asyncio.Runner() as runner:
            layers = [with_runner(each, runner) for each in middleware]
            wrapped = partial(run_within, layers, context, call)
            value = _called_within_limit(wrapped, ready.timeout)
    if not hasattr(value, "__await__"):
        return value
    used = time.monotonic() - started
    work = awaited(value)
    if context is not None and middleware:
        work = run_in_loop(middleware, context, partial(awaited, value))
    return asyncio.run(within(ready.timeout, work, used))


def _called_within_limit(call: Callable[[], Any], limit: float | None) -> Any:
    """Call; when its time is over, JobTimeout is raised in the middle of it, to be caught or not."""
    timeout = limit or 0
    late = False

    def interrupt(*_: object) -> None:
        nonlocal late
        signal.setitimer(signal.ITIMER_REAL, 0)
        late = True
        raise JobTimeout

    signals.handle_from_now_on((signal.SIGALRM,), interrupt)
    signal.setitimer(signal.ITIMER_REAL, timeout, AGAIN_SECS)
    try:
        return call()
    except BaseException as error:
        if late:
            raise_late(error, timeout)
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _read(end: socket.socket) -> bytes:
    with end.makefile("rb") as file:
        head = file.read(4)
        content = file.read(int.from_bytes(head))
    if len(head) < 4 or len(content) < int.from_bytes(head):
        raise ConnectionResetError
    return content


def _end_with_parent() -> None:
    """Have the system kill this process when its parent dies. The parent has one thread, as that requires."""
    parent = os.getppid()
    process_life.signal_at_end_of_parent(signal.SIGKILL)
    if os.getppid() != parent or parent == 1:
        os._exit(1)
