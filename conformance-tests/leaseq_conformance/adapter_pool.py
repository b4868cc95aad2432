"""The adapter processes of a run, behind the fault proxy. They are kept from case to case, because starting one takes time.

A case works with a session: names for actors, which the pool finds processes for, and queue names that no other case has.
When the case ends, a process that owes no answer goes back to the pool. A process that was killed or still waits is ended.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import TYPE_CHECKING, Self

from leaseq_conformance.adapter_process import AdapterError, AdapterProcess, Answer, Pending
from leaseq_conformance.fault_proxy import FaultProxy
from leaseq_conformance.manifest import NAMES_BY_DIGEST
from leaseq_conformance.stall_probe import StallProbe
from leaseq_conformance.timestamp import timestamp
from leaseq_conformance.worker_program import ZONE, WorkerPrograms

if TYPE_CHECKING:
    from types import TracebackType

    from leaseq_conformance.fault_proxy import Listener
    from leaseq_conformance.redis_server import Server


class PooledAdapter:
    """An adapter process and the listener of the proxy that it connects to."""

    def __init__(self, listener: Listener, process: AdapterProcess, *, is_of_cluster: bool = False) -> None:
        self.listener = listener
        self.is_of_cluster = is_of_cluster
        self.process = process
        self.opened: set[str] = set()
        self.pending: list[Pending] = []
        self.killed = False
        self._lines_taken = 0
        self._stderr_taken = 0
        listener.kill = self.kill

    def kill(self) -> None:
        """Kill its process with SIGKILL."""
        self.killed = True
        self.process.kill()

    def begin_case(self, actor: str) -> None:
        """Name it for a new case, which gets only what is said from now on."""
        self.listener.client = actor
        self._stderr_taken = self.process.stderr_size()

    def lines(self) -> list[str]:
        """The messages to and from it since the last call."""
        new = self.process.transcript[self._lines_taken :]
        self._lines_taken += len(new)
        return [f"{self.listener.client} {line}" for line in new]

    def stderr(self) -> list[str]:
        """The last lines of what it wrote to stderr in this case."""
        return [f"{self.listener.client}: {line}" for line in self.process.stderr_lines(self._stderr_taken)]

    def is_idle(self) -> bool:
        """Return whether it owes no answer and its process lives."""
        return not self.killed and all(call.done for call in self.pending) and self.process.fault is None


class AdapterPool:
    """The adapter processes of a run, and the proxy between them and the server. Runs in a `with` block.

    Attributes:
        stderr: what the adapters of the last case wrote to stderr, its last lines.
        stalls: measures how late the harness itself was.
        workers: the job worker programs, which end when a case of another suite starts.
    """

    def __init__(self, server: Server, command: tuple[str, ...]) -> None:
        self.server = server
        self.proxy = FaultProxy(server.url, NAMES_BY_DIGEST)
        self.command = command
        self.stderr: list[str] = []
        self.stalls = StallProbe()
        self.workers = WorkerPrograms(self.proxy, self._job_worker)
        self._idle: list[PooledAdapter] = []
        self._listeners: list[Listener] = []
        self._numbers = itertools.count(1)

    def acquire(self, name: str) -> PooledAdapter:
        """A process for an actor of this name: an idle one, or a new one. Raises AdapterError."""
        if self._idle:
            adapter = self._idle.pop()
        else:
            listener = self._listeners.pop() if self._listeners else self._new_listener()
            listener.client = name
            adapter = PooledAdapter(listener, self._process(name, listener))
            self.proxy.learn_scripts(adapter.process.hello["scripts"])
        adapter.process.name = name
        adapter.begin_case(name)
        return adapter

    def of_cluster(self, name: str) -> PooledAdapter:
        """Start a process whose server looks like a node of a cluster: the listener replies that the node has every slot."""
        listener = self._listeners.pop() if self._listeners else self._new_listener()
        listener.client, listener.has_every_slot = name, True
        adapter = PooledAdapter(listener, self._process(name, listener, cluster=True), is_of_cluster=True)
        self.proxy.learn_scripts(adapter.process.hello["scripts"])
        adapter.begin_case(name)
        return adapter

    def _process(self, name: str, listener: Listener, *, cluster: bool = False) -> AdapterProcess:
        environment = {**os.environ, "TZ": ZONE}
        return AdapterProcess(name, self.command, listener.url, cluster=cluster, environment=environment)

    def _new_listener(self) -> Listener:
        return self.proxy.listener(f"listener {next(self._numbers)}")

    def release(self, adapter: PooledAdapter) -> None:
        """Keep a process for the next case, or end it if it still owes an answer."""
        if not adapter.is_idle():
            self.discard(adapter)
            return
        if adapter.is_of_cluster:
            self.discard(adapter)
            return
        adapter.pending.clear()
        for handle in sorted(adapter.opened):
            adapter.process.close(handle)
        adapter.opened.clear()
        adapter.lines()
        self._idle.append(adapter)

    def discard(self, adapter: PooledAdapter) -> None:
        """Kill a process, whatever it is doing."""
        adapter.kill()
        with contextlib.suppress(AdapterError):  # a fault was reported to the case that made the call
            adapter.process.stop()
        adapter.listener.reset()
        adapter.listener.has_every_slot = False
        self._listeners.append(adapter.listener)

    def discard_idle(self) -> None:
        """Kill those that no case has: after a restart of the server their connections are gone."""
        while self._idle:
            self.discard(self._idle.pop())

    def _job_worker(self) -> tuple[str, ...]:
        """The command of the job worker program, as an adapter names it."""
        adapter = self.acquire("hello")
        self.release(adapter)
        return tuple(adapter.process.hello.get("job_worker", ()))

    def session(self, *, keeps_workers: bool = False) -> CaseSession:
        """The actors and queues of one case."""
        if not keeps_workers:
            self.workers.end()
        self.stderr = []
        return CaseSession(self, next(self._numbers))

    def __enter__(self) -> Self:
        self.stalls.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.workers.end()
        self.discard_idle()
        self.proxy.__exit__(kind, error, trace)
        self.stalls.__exit__(kind, error, trace)


class CaseSession:
    """The actors and queues of one case.

    Args:
        number: part of the names of its queues, so that no other case has them.
    """

    def __init__(self, pool: AdapterPool, number: int) -> None:
        self.pool = pool
        self.proxy = pool.proxy
        self.server = pool.server
        self.log: list[str] = []
        self._number = number
        self._adapters: dict[str, PooledAdapter] = {}
        self._groups: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def declare(self, handle: str, group: str | None = None, name: str | None = None) -> None:
        """Set the group of a queue, by default one for it alone, and its name, by default its handle."""
        self._groups[handle] = f"{group or handle}-{self._number}"
        self._names[handle] = name or handle

    def queue_name(self, handle: str) -> str:
        """The name of a queue on the server."""
        return f"{self._names.get(handle, handle)}-{self._number}"

    def prefix(self, handle: str) -> str:
        """Return the prefix of a queue's keys."""
        group = self._groups.get(handle, self.queue_name(handle))
        return f"leaseq:{{{group}}}:{self.queue_name(handle)}:"

    def adapter(self, name: str, *handles: str) -> PooledAdapter:
        """The process of an actor, started if need be, with these queues opened. Raises AdapterError."""
        adapter = self._adapters.get(name)
        if adapter is None:
            adapter = self._adapters[name] = self.pool.acquire(name)
        for handle in handles:
            if handle not in adapter.opened:
                name_on_server = self.queue_name(handle)
                group = self._groups.get(handle)
                adapter.process.open(handle, name_on_server, None if group == name_on_server else group)
                adapter.opened.add(handle)
        return adapter

    def cluster_adapter(self, name: str) -> None:
        """Make an actor one whose server is a node of a cluster. Raises AdapterError."""
        self._adapters[name] = self.pool.of_cluster(name)

    def start(self, name: str, handle: str | None, method: str, args: dict[str, object]) -> Pending:
        """Start a call of an actor. `handle` is None for `lease_any`, whose queues are in its arguments."""
        queues = args.get("queues", [])
        assert isinstance(queues, list)
        handles = [handle] if handle else [str(queue) for queue in queues]
        adapter = self.adapter(name, *handles)
        sent_before = len(self.proxy.commands_of(name))
        pending = adapter.process.start(handle, method, **args)
        pending.explain = lambda: self._sent_since(name, sent_before)
        adapter.pending.append(pending)
        return pending

    def call(
        self, name: str, handle: str | None, method: str, patience: float, args: dict[str, object]
    ) -> Answer:
        """Make a call and wait for its answer."""
        return self.start(name, handle, method, args).answer(patience)

    def kill(self, name: str) -> None:
        """Kill an actor with SIGKILL; the next call under its name is made by a new process."""
        adapter = self._adapters.pop(name)
        adapter.kill()
        self.log += adapter.lines()
        self.pool.stderr += adapter.stderr()
        self.pool.discard(adapter)

    def close(self, name: str, handle: str) -> Answer:
        """Close a queue of an actor."""
        adapter = self._adapters[name]
        adapter.opened.discard(handle)
        return adapter.process.close(handle)

    def close_client(self, name: str) -> Pending:
        """Close the whole client of an actor; queues are opened anew when they are used."""
        adapter = self._adapters[name]
        adapter.opened.clear()
        return adapter.process.send({"op": "close_client"})

    def restart_server(self) -> None:
        """Restart the server; idle processes are ended, because their connections are gone."""
        self.server.restart()
        self.pool.discard_idle()

    def longest_stall(self, since: float) -> float:
        """By how many seconds the harness itself was late at most since a moment of time.monotonic(); 0 if it was not."""
        return self.pool.stalls.longest(since)

    def note(self, line: str) -> None:
        """Add the messages since the last note, then this line, to the log."""
        for adapter in self._adapters.values():
            self.log += adapter.lines()
        self.log.append(f"{timestamp()} {line}")

    def transcript(self) -> tuple[str, ...]:
        """All that was said: the messages of the actors step by step, then the commands that they sent."""
        self.note("commands as the proxy saw them:")
        return (*self.log, *self.proxy.transcript())

    def _sent_since(self, name: str, sent_before: int) -> str:
        """For the message of a missing answer."""
        sent = self.proxy.commands_of(name)[sent_before:]
        if not sent:
            return "; since then the client has sent nothing to the server"
        return f"; the last command that the client sent: {sent[-1].describe()[:500]}"

    def __enter__(self) -> Self:
        self.proxy.clear()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.proxy.clear()
        for adapter in self._adapters.values():
            self.pool.stderr += adapter.stderr()
            if kind is None:
                self.pool.release(adapter)
            else:
                self.pool.discard(adapter)
        self._adapters.clear()
