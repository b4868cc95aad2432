# Generated from _aio/chain.py by tools/unasync.py: do not edit.
"""Chains: jobs one after the other, each given what the one before it returned (LQ-JOB-16)."""

import dataclasses
import uuid
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import msgspec

from leaseq._sync import concurrency
from leaseq.durations import Duration, seconds
from leaseq.errors import BadTypeError, NotDurableError
from leaseq.item import derived_id
from leaseq.jobs import info
from leaseq.jobs._aio.chain import Chain as AsyncChain
from leaseq.jobs._aio.chain import ChainHandle as AsyncChainHandle
from leaseq.jobs._sync.handle import Handle
from leaseq.jobs.call import Call, Partial
from leaseq.jobs.clients import Clients
from leaseq.jobs.info import Status

T = TypeVar("T")
U = TypeVar("U")


class Chain(Generic[T]):
    """Jobs one after the other: `app.chain(fetch.call(url)).then(parse.partial()).then(store.partial("db")).enqueue()`.

    Each job gets the result of the one before it as its first argument. One call to the server completes a job and
    enqueues the next, so a crash cannot lose the next one. A dead job ends the chain; if it is revived, the chain goes on.
    """

    def __init__(self, clients: Clients, first: Call[Any], steps: Sequence[Partial[Any, Any]] = ()) -> None:
        self._clients = clients
        self._first = first
        self._steps = tuple(steps)

    @property
    def aio(self) -> "AsyncChain[T]":
        """The same for asyncio: `await chain.aio.enqueue()`."""
        return AsyncChain(self._clients, self._first, self._steps)

    def then(self, step: Partial[T, U]) -> "Chain[U]":
        """Return a new chain with one more job at its end: `chain.then(g.partial())`. Raises BadTypeError."""
        given: Any = step
        if not isinstance(given, Partial):
            raise BadTypeError(
                f"a chain goes on with a partial call, as in fn.partial(), not {type(given).__name__}"
            )
        return Chain(self._clients, self._first, [*self._steps, given])

    def enqueue(self) -> "ChainHandle[T]":
        """Enqueue the first job, which carries the others with it. Return a handle of the chain.

        Raises the errors of `JobFunction.enqueue`.
        """
        (first,) = self._clients.sync.identified([self._first])
        call = self._call(first)
        try:
            [(_, added)] = self._clients.sync.enqueue_many([call])
        except NotDurableError as error:
            error.answer = self._handle(call, added=bool(error.answers[0]))
            raise
        return self._handle(call, added)

    def call(self) -> Call[Any]:
        """Return the first job with the others behind it, for an outbox. Nothing is enqueued. It cannot be unique or throttled."""
        return self._call(self._first)

    def _call(self, first: Call[Any]) -> Call[Any]:
        """Return the first call with an id, and the others behind it."""
        if not first.chosen_id:
            first = msgspec.structs.replace(
                first, options=dataclasses.replace(first.options, id=uuid.uuid4().hex)
            )
        sources = self._clients.settings.headers
        calls = [step.call.with_headers(sources) if sources else step.call for step in self._steps]
        stages = [call.stage(derived_id(first.chosen_id, number)) for number, call in enumerate(calls, 1)]
        return msgspec.structs.replace(first, then=stages)

    def _handle(self, call: Call[Any], added: bool) -> "ChainHandle[T]":
        first = Handle(self._clients, call.chosen_id, call.options.queue, call.convert, added)
        behind = [
            Handle(self._clients, stage.id, stage.queue, step.call.convert, added)
            for stage, step in zip(call.then, self._steps, strict=True)
        ]
        return ChainHandle(self._clients, [first, *behind])


class ChainHandle(Generic[T]):
    """A chain that was enqueued.

    Attributes:
        stages: a handle of each job, in order; the status of those whose turn has not come is "unknown".
    """

    def __init__(self, clients: Clients, stages: Sequence[Handle[Any]]) -> None:
        self._clients = clients
        self.stages = tuple(stages)

    @property
    def aio(self) -> "AsyncChainHandle[T]":
        """The same for asyncio: `await handle.aio.result()`."""
        return AsyncChainHandle(self._clients, [stage.aio for stage in self.stages])

    @property
    def id(self) -> str:
        """The id of the chain, which is that of its first job. `App.find_chain` finds the chain again by it."""
        return self.stages[0].id

    @property
    def last(self) -> Handle[T]:
        """The last job. Its result is that of the chain."""
        return self.stages[-1]

    @property
    def added(self) -> bool:
        """False if a job with the id of the first one was in the queue already."""
        return self.stages[0].added

    def status(self) -> Status:
        """Return the status of the job whose turn it is; "succeeded" when the last job has.

        "unknown" if that job has ended and nothing is kept of it.
        """
        handed_on = -1
        while True:
            turn, status = _turn(self._statuses())
            if status != "succeeded" or turn == len(self.stages) - 1:
                return status
            if turn == handed_on:
                return "unknown"
            # the next is there already, or its end was not kept: it was asked for first
            handed_on = turn

    def _statuses(self) -> list[Status]:
        """Ask from the last job to the first: what is handed on meanwhile is seen in one of them."""
        states = [self._clients.sync.state_of(stage) for stage in reversed(self.stages)]
        return info.statuses_of_chain(states[::-1])

    def result(self, timeout: Duration | None = None) -> T:
        """Return what the last job returned. Waits up to `timeout` seconds (0: not at all; None: without limit) for all jobs.

        Raises the errors of `Handle.result`: JobFailed is that of the job that failed, and ResultNotKept is also raised if
        a job before the last keeps no result.
        """
        over = None if timeout is None else concurrency.now() + seconds(timeout, "timeout")
        for number, stage in enumerate(self.stages[:-1], 1):
            if set((self._statuses())[number:]) == {"unknown"}:
                # that it ended is waited for, and what it returned need not fit this program's function
                Handle(self._clients, stage.id, stage.queue).result(_left(over))
        return self.last.result(_left(over))

    def cancel(self) -> bool:
        """Cancel the job whose turn it is, and with it the later ones. Return false if there is none."""
        cancelled = False
        for stage in self.stages:
            cancelled = cancelled or stage.cancel()
        return cancelled

    def __repr__(self) -> str:
        return f"<ChainHandle of {len(self.stages)} jobs, {self.id!r}>"


def _left(over: float | None) -> float | None:
    return None if over is None else max(0.0, over - concurrency.now())


def _turn(statuses: Sequence[Status]) -> tuple[int, Status]:
    """Return the number of the last job that is known, and its status."""
    known = [number for number, status in enumerate(statuses) if status != "unknown"]
    return (known[-1], statuses[known[-1]]) if known else (0, "unknown")
