"""Chains: jobs one after the other, each given what the one before it returned (LQ-JOB-16)."""

import dataclasses
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.item import derived_id
from leaseq.jobs.call import Call
from leaseq.jobs.handle import Handle
from leaseq.jobs.info import Status, status_of
from leaseq.jobs.note import Note
from leaseq.results import Outcome

if TYPE_CHECKING:
    from leaseq.jobs.enqueuing import Enqueuing
    from leaseq.jobs.envelope import Stage

T = TypeVar("T")
U = TypeVar("U")
R_contra = TypeVar("R_contra", contravariant=True)
S_co = TypeVar("S_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Step(Generic[R_contra, S_co]):
    """A call whose first argument is what the job before it returns: `fn.step(2, 3)`. Raises BadArgumentError.

    Attributes:
        call: without its first argument.
    """

    call: Call[Any]

    def __post_init__(self) -> None:
        if self.call.options.id is not None or self.call.options.at is not None:
            raise BadArgumentError(
                "a step has neither an id, which is that of the first job and a number, nor a time; a delay counts from"
                " the end of the job before it"
            )


class Chain(Generic[T]):
    """Jobs one after the other: `app.chain(fetch.call(url)).then(parse.step()).then(store.step("db")).enqueue()`.

    One that ends is completed, and the next enqueued, in one step of the server: no crash comes between. One that dies
    ends the chain; revived, it goes on.
    """

    def __init__(self, app: "Enqueuing", first: Call[Any], steps: Sequence[Step[Any, Any]] = ()) -> None:
        self._app = app
        self._first = first
        self._steps = tuple(steps)

    def then(self, step: Step[T, U]) -> "Chain[U]":
        """The same with one more job behind it. Raises BadTypeError."""
        given: Any = step
        if not isinstance(given, Step):
            raise BadTypeError(f"a chain goes on with a step, as in fn.step(), not {type(given).__name__}")
        return Chain(self._app, self._first, [*self._steps, given])

    def enqueue(self) -> "ChainHandle[T]":
        """Enqueue the first job, which brings the others along. Raises what `enqueue` of a function raises."""
        call = self._call()
        return self._handle(call, self._app._enqueue(call))

    async def aenqueue(self) -> "ChainHandle[T]":
        """`enqueue` for asyncio."""
        call = self._call()
        return self._handle(call, await self._app._aenqueue(call))

    def _call(self) -> Call[Any]:
        first = self._first.options.id or uuid.uuid4().hex
        stages: list[Stage] = []
        for number, step in enumerate(self._steps, 1):
            stage = step.call.stage()
            stage.id = derived_id(first, number)
            stages.append(stage)
        options = dataclasses.replace(self._first.options, id=first)
        return msgspec.structs.replace(self._first, options=options, then=stages)

    def _handle(self, call: Call[Any], first: Handle[Any]) -> "ChainHandle[T]":
        behind = [
            Handle(self._app, stage.id, stage.queue, step.call.convert, added=first.added)
            for stage, step in zip(call.then, self._steps, strict=True)
        ]
        return ChainHandle([first, *behind])


class ChainHandle(Generic[T]):
    """A chain that was enqueued.

    Attributes:
        stages: a handle of each job; those whose turn has not come are "unknown".
    """

    def __init__(self, stages: Sequence[Handle[Any]]) -> None:
        self.stages = tuple(stages)

    @property
    def last(self) -> Handle[T]:
        """The last job, whose result is that of the chain."""
        return self.stages[-1]

    @property
    def added(self) -> bool:
        """False where a job of the first one's id was there already."""
        return self.stages[0].added

    def status(self) -> Status:
        """Of the job whose turn it is; "succeeded" when the last one has."""
        return _status(self._statuses())

    async def astatus(self) -> Status:
        """`status` for asyncio."""
        return _status(await self._astatuses())

    def _statuses(self) -> list[Status]:
        """Of each job, asked from the last to the first: what is handed on meanwhile is seen in one of them."""
        return _of_one_chain([stage._told() for stage in reversed(self.stages)][::-1])

    async def _astatuses(self) -> list[Status]:
        """`_statuses` for asyncio."""
        return _of_one_chain([await stage._atold() for stage in reversed(self.stages)][::-1])

    def result(self, timeout: float | None = None) -> T:
        """What the last job returned. Waits as `Handle.result` does, for one job after the other.

        Raises JobFailed for whichever job it was, JobCancelled, ResultNotKept also where one on the way keeps none,
        TimeoutError.
        """
        ends = _ends(timeout)
        for number, stage in enumerate(self.stages[:-1]):
            if set(self._statuses()[number + 1 :]) == {"unknown"}:
                stage.result(_left(ends))
        return self.last.result(_left(ends))

    async def aresult(self, timeout: float | None = None) -> T:
        """`result` for asyncio."""
        ends = _ends(timeout)
        for number, stage in enumerate(self.stages[:-1]):
            if set((await self._astatuses())[number + 1 :]) == {"unknown"}:
                await stage.aresult(_left(ends))
        return await self.last.aresult(_left(ends))

    def cancel(self) -> bool:
        """Cancel the job whose turn it is, and with it those behind it; false where there was none."""
        return any(stage.cancel() for stage in self.stages)

    async def acancel(self) -> bool:
        """`cancel` for asyncio."""
        for stage in self.stages:
            if await stage.acancel():
                return True
        return False

    def __repr__(self) -> str:
        return f"<ChainHandle of {len(self.stages)} jobs, {self.stages[0].id!r}>"


def _of_one_chain(told: Sequence[tuple[Outcome, Note]]) -> list[Status]:
    """Each is created after the one before it: what an earlier chain of these ids has left does not count."""
    statuses: list[Status] = []
    newest = 0.0
    for outcome, note in told:
        is_older = 0 < outcome.created < newest
        statuses.append("unknown" if is_older else status_of(outcome, note))
        newest = max(newest, outcome.created)
    return statuses


def _status(statuses: Sequence[Status]) -> Status:
    """Of several, asked from the last to the first: that of the one whose turn it is."""
    for number, status in enumerate(reversed(statuses)):
        if status == "succeeded" and number > 0:
            return "ready"  # handed on since the next was asked
        if status != "unknown":
            return status
    return "unknown"


def _ends(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _left(ends: float | None) -> float | None:
    return None if ends is None else max(0.0, ends - time.monotonic())
