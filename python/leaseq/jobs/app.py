"""The App: functions by name, queues by name, a server."""

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

import redis
import redis.asyncio

from leaseq import commands
from leaseq._aio.queue import WorkQueue as AsyncWorkQueue
from leaseq._sync.queue import WorkQueue
from leaseq.commands.adding import Options as ItemOptions
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.item import Item
from leaseq.jobs import info
from leaseq.jobs._aio.store import Store as AsyncStore
from leaseq.jobs._sync.store import Store
from leaseq.jobs.call import Call
from leaseq.jobs.chain import Chain
from leaseq.jobs.context import Context
from leaseq.jobs.cron.schedule import Missed, Schedule
from leaseq.jobs.cron.schedules import Schedules
from leaseq.jobs.cron.timetable import Crontab, Interval, Timetable, zone
from leaseq.jobs.function import Enqueuer, JobFunction, check_module, listed, name_of
from leaseq.jobs.handle import Handle
from leaseq.jobs.info import JobInfo, Status
from leaseq.jobs.options import CallOptions, FunctionOptions, Options
from leaseq.jobs.serializer import Format, Serializer, check_format, check_serializer
from leaseq.jobs.worker.service import Service, WorkerOptions
from leaseq.jobs.worker.supervisor import Supervisor
from leaseq.keys import QueueKeys

if TYPE_CHECKING:
    from leaseq.jobs.testing import Runner

P = ParamSpec("P")
T = TypeVar("T")
Hook = Callable[[], Any]
H = TypeVar("H", bound=Hook)
Server = str | redis.Redis | redis.RedisCluster | redis.asyncio.Redis | redis.asyncio.RedisCluster

ListState = Literal["ready", "delayed", "running", "failed", "finished"]

_LISTS: dict[str, Literal["ready", "delayed", "leased", "dead", "kept"]] = {
    "ready": "ready",
    "delayed": "delayed",
    "running": "leased",
    "failed": "dead",
    "finished": "kept",
}


class Decorator(Protocol):
    """What `@app.job(...)` makes a job of."""

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Awaitable[T]], /) -> JobFunction[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[T]], /) -> JobFunction[P, T]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], T], /) -> JobFunction[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> JobFunction[P, T]: ...


class Scheduler(Protocol):
    """What `@app.cron(...)` and `@app.every(...)` schedule: a job's function, or one that becomes one."""

    @overload
    def __call__(self, function: JobFunction[P, T], /) -> JobFunction[P, T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[[Context], Awaitable[T]], /) -> JobFunction[[], T]: ...
    @overload
    def __call__(self, function: Callable[[], Awaitable[T]], /) -> JobFunction[[], T]: ...
    @overload
    def __call__(self, function: Callable[[Context], T], /) -> JobFunction[[], T]: ...
    @overload
    def __call__(self, function: Callable[[], T], /) -> JobFunction[[], T]: ...


class App:
    """Functions that run elsewhere.

        app = leaseq.jobs.App("redis://localhost")

        @app.job(max_attempts=3)
        async def send(address: str) -> int: ...

        handle = send.enqueue("a@example.org")     # or: await send.aenqueue(...)

    `server` is a URL or a redis-py client as for WorkQueue; with a client, the methods of its colour work. All queues
    are of one `group`. `queue` is where jobs go that say no other. Arguments and results are MessagePack, or JSON by
    `format`, or what a `serializer` makes of them. A server is not asked for before the first call.

    Raises BadNameError, BadTypeError, BadArgumentError.
    """

    def __init__(
        self,
        server: Server | None = None,
        *,
        group: str = "jobs",
        queue: str = "default",
        format: Format = "msgpack",  # noqa: A002
        serializer: Serializer | None = None,
    ) -> None:
        QueueKeys(queue, group)
        self._server = server
        self._group = group
        self._format = check_format(format)
        self._serializer = check_serializer(serializer)
        self._serializers = {serializer.name: serializer} if serializer is not None else {}
        self._defaults = Options(queue=queue)
        self.functions: dict[str, JobFunction[Any, Any]] = {}
        self.schedules = Schedules(self)
        self._opened: tuple[int, Store] | None = None
        self._guard = threading.Lock()
        self._at_once: Runner | None = None
        self._startup: list[Hook] = []
        self._shutdown: list[Hook] = []
        self._astores: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncStore] = (
            weakref.WeakKeyDictionary()
        )

    @overload
    def job(self, target: Callable[Concatenate[Context, P], Awaitable[T]], /) -> JobFunction[P, T]: ...
    @overload
    def job(self, target: Callable[P, Awaitable[T]], /) -> JobFunction[P, T]: ...
    @overload
    def job(self, target: Callable[Concatenate[Context, P], T], /) -> JobFunction[P, T]: ...
    @overload
    def job(self, target: Callable[P, T], /) -> JobFunction[P, T]: ...
    @overload
    def job(self, target: str, /, *, queue: str | None = None) -> Handle[Any]: ...
    @overload
    def job(
        self, target: None = None, /, *, name: str | None = None, **options: Unpack[FunctionOptions]
    ) -> Decorator: ...

    def job(self, target: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
        """Decorate a function, `@app.job` or `@app.job(queue="mail", ...)`; or find a job again, `app.job("its id")`.

        A function's name is its module and name, unless `name` gives another. If its first parameter is annotated with
        `Context`, the job is given its own. For the options see `leaseq.jobs.options.Options`. A job is looked for in
        `queue`, else in the queues of the App and its functions. Raises BadTypeError, BadArgumentError.
        """
        if isinstance(target, str):
            return Handle(self, target, options.get("queue") or "", _as_it_is)
        if target is not None:
            return self._register(target, name, self._defaults)
        chosen = self._defaults.with_(options, FunctionOptions)
        QueueKeys(chosen.queue)
        return cast("Decorator", lambda function: self._register(function, name, chosen))

    def _register(self, function: Any, name: str | None, options: Options) -> JobFunction[Any, Any]:
        named = name_of(function, name)
        known = self.functions.get(named)
        if known is not None and known.function is not function:
            raise BadArgumentError(
                f"there is a job function {named!r} already: give one of them another name"
            )
        self.functions[named] = JobFunction(self, function, named, options)
        return self.functions[named]

    def cron(
        self,
        line: str,
        *,
        tz: str | tzinfo = "UTC",
        missed: Missed = "last",
        name: str | None = None,
        **options: Unpack[FunctionOptions],
    ) -> Scheduler:
        """Decorate a function, or what `@app.job` made of one, to be run by a line of crontab: once for each slot.

        `line` has minute, hour, day of month, month and day of week, and may have a second before them; or it is
        `@hourly` and the like. `tz` is a time zone or its name. `missed` says what becomes of slots for which no worker
        was there: "last" runs the last of them, "all" runs each, "none" runs none that is more than a minute late.
        `name` is the schedule's, by default that of the function, which takes no arguments. The options are those of its
        jobs, of which no result is kept unless `result_ttl` says so. Raises BadTypeError, BadArgumentError.
        """
        return self._scheduler(Crontab(line, zone(tz)), missed, name, options)

    def every(
        self,
        seconds: float,
        *,
        missed: Missed = "last",
        name: str | None = None,
        **options: Unpack[FunctionOptions],
    ) -> Scheduler:
        """The same with an interval: slots are the multiples of `seconds` since 1970. See `cron`."""
        return self._scheduler(Interval(seconds), missed, name, options)

    def _scheduler(
        self, timetable: Timetable, missed: Missed, name: str | None, options: FunctionOptions
    ) -> Scheduler:
        chosen = cast("CallOptions", {"result_ttl": None, **options})

        def schedule(function: Any) -> JobFunction[Any, Any]:
            job: Any = function
            if not isinstance(function, JobFunction):
                job = self._register(function, name, self._defaults.with_(options, FunctionOptions))
            self.schedules.add(Schedule(name or job.name, job.using(**chosen).call(), timetable, missed))
            return cast("JobFunction[Any, Any]", job)

        return schedule

    def on_startup(self, hook: H) -> H:
        """Decorate a function, asynchronous or not, that each process of a worker calls before its first job."""
        self._startup.append(hook)
        return hook

    def on_shutdown(self, hook: H) -> H:
        """Decorate a function, asynchronous or not, that each process of a worker calls after its last job."""
        self._shutdown.append(hook)
        return hook

    async def arun_worker(self, **options: Unpack[WorkerOptions]) -> int:
        """Run jobs in this event loop until stopped (SIGTERM, SIGINT; a second one ends it at once).

        Answers how many have ended here, however. For the options see `leaseq.jobs.worker.service.WorkerOptions`.
        """
        return await Service(self, **options).run()

    def run_worker(self, *, processes: int | None = None, **options: Unpack[WorkerOptions]) -> int:
        """Run jobs in `processes` processes (one for each CPU), which this one supervises, until stopped.

        SIGTERM or Ctrl-C lets jobs end, for the grace time; a second one does not; a third kills. A process that dies is
        replaced, and what it held is leasable at once. Answers how many jobs have ended, however. The processes are
        forked: call it before there are threads. Raises WorkerFailedError where they cannot begin.
        """
        count = _cpus() if processes is None else commands.whole(processes, "processes")
        if count < 1:
            raise BadArgumentError("processes must be at least 1; arun_worker runs jobs in this one")
        if self.is_embedded:
            self._store  # noqa: B018 (opened: the server ends with this process, not with one of those)
        else:
            self.close()
        return Supervisor(self, count, options).run()

    @property
    def is_embedded(self) -> bool:
        """Whether its server ends with the process that started it."""
        url = self._server if self._server is not None else os.environ.get("REDIS_URL", "")
        return isinstance(url, str) and url.startswith("embedded:")

    def named(self, name: str) -> Enqueuer[..., Any]:
        """What enqueues a function by its name, which need not be known here: `app.named("mail.send").using(...)`."""
        return self.functions.get(name) or Enqueuer(self, name_of(_as_it_is, name), self._defaults)

    def enqueue(self, name: str, /, *args: Any, **kwargs: Any) -> Handle[Any]:
        """Enqueue a function by its name, which need not be known here."""
        return self.named(name).enqueue(*args, **kwargs)

    async def aenqueue(self, name: str, /, *args: Any, **kwargs: Any) -> Handle[Any]:
        """`enqueue` for asyncio."""
        return await self.named(name).aenqueue(*args, **kwargs)

    def enqueue_many(self, calls: Iterable[Call[T]]) -> list[Handle[T]]:
        """Enqueue calls, in one round trip for each queue and 256 of them; a handle for each, in order.

        When a call to the server fails, what was answered before is in the error's `answers`, of that queue.
        """
        given = listed(calls)
        handles: dict[int, Handle[T]] = {}
        for queue, numbers in _by_queue(given).items():
            chosen = [given[number] for number in numbers]
            now = self._store.now(queue) if _asks_time(chosen) else None
            entries = self._entries(chosen, now)
            answers = self._store.add(queue, entries)
            self._store.drop_notes(queue, _reused(chosen, answers))
            handles.update(zip(numbers, self._handles(chosen, entries, answers), strict=True))
        if self._at_once is not None:
            self._at_once.run()
        return [handles[number] for number in range(len(given))]

    async def aenqueue_many(self, calls: Iterable[Call[T]]) -> list[Handle[T]]:
        """`enqueue_many` for asyncio."""
        given = listed(calls)
        handles: dict[int, Handle[T]] = {}
        for queue, numbers in _by_queue(given).items():
            chosen = [given[number] for number in numbers]
            now = await self._astore.now(queue) if _asks_time(chosen) else None
            entries = self._entries(chosen, now)
            answers = await self._astore.add(queue, entries)
            await self._astore.drop_notes(queue, _reused(chosen, answers))
            handles.update(zip(numbers, self._handles(chosen, entries, answers), strict=True))
        if self._at_once is not None:
            await self._at_once.arun()
        return [handles[number] for number in range(len(given))]

    def chain(self, first: Call[T]) -> Chain[T]:
        """Jobs one after the other: `app.chain(f.call(1)).then(g.step()).enqueue()`. Raises BadTypeError."""
        return Chain(self, listed([first])[0])

    def statuses(self, handles: Iterable[Handle[Any]]) -> list[Status]:
        """The status of many jobs, in order: two round trips for each queue and 256 of them."""
        given = list(handles)
        found: dict[int, Status] = {}
        for queue, numbers in _by_queue(given).items():
            told = self._store.outcomes(queue, [given[number].id for number in numbers])
            found.update(zip(numbers, (info.status_of(*one) for one in told), strict=True))
        return [found[number] for number in range(len(given))]

    async def astatuses(self, handles: Iterable[Handle[Any]]) -> list[Status]:
        """`statuses` for asyncio."""
        given = list(handles)
        found: dict[int, Status] = {}
        for queue, numbers in _by_queue(given).items():
            told = await self._astore.outcomes(queue, [given[number].id for number in numbers])
            found.update(zip(numbers, (info.status_of(*one) for one in told), strict=True))
        return [found[number] for number in range(len(given))]

    def jobs(
        self, state: ListState, *, queue: str | None = None, offset: int = 0, limit: int = 100
    ) -> list[JobInfo]:
        """One page of the jobs of a queue, next first, with all that is known of each; `limit` is 1..256.

        "finished" are those whose result or failure is kept, that which goes first first. Five round trips.
        """
        name = queue or self._defaults.queue
        ids = self._store.listed(name, _list(state), offset, limit)
        return [info.info_of(name, told, self._serializers) for told in self._store.told(name, ids)]

    async def ajobs(
        self, state: ListState, *, queue: str | None = None, offset: int = 0, limit: int = 100
    ) -> list[JobInfo]:
        """`jobs` for asyncio."""
        name = queue or self._defaults.queue
        ids = await self._astore.listed(name, _list(state), offset, limit)
        return [info.info_of(name, told, self._serializers) for told in await self._astore.told(name, ids)]

    def queue(self, name: str | None = None) -> WorkQueue:
        """The queue below: its dead letters, statistics, limits. The App closes it."""
        return self._store.queue(name or self._defaults.queue)

    def aqueue(self, name: str | None = None) -> AsyncWorkQueue:
        """`queue` for asyncio."""
        return self._astore.queue(name or self._defaults.queue)

    @property
    def group(self) -> str:
        """The group of all its queues."""
        return self._group

    @property
    def queues(self) -> list[str]:
        """The queues that it knows: its own and those of its functions."""
        return list(
            dict.fromkeys([self._defaults.queue, *(each.options.queue for each in self.functions.values())])
        )

    def close(self) -> None:
        """Close what was opened for threads. Used again, it opens again."""
        with self._guard:
            opened, self._opened = self._opened, None
        if opened is not None and opened[0] == os.getpid():
            opened[1].close()

    async def aclose(self) -> None:
        """Close what was opened in this event loop, and what was for threads."""
        store = self._astores.pop(asyncio.get_running_loop(), None)
        if store is not None:
            await store.close()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<App of group {self._group!r}, {len(self.functions)} functions>"

    @property
    def _store(self) -> Store:
        """What is opened for threads; a process that was forked opens its own."""
        with self._guard:
            if self._opened is None or self._opened[0] != os.getpid():
                self._opened = (os.getpid(), Store(cast("Any", self._server), self._group))
            return self._opened[1]

    @property
    def _astore(self) -> AsyncStore:
        """What is opened in the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._astores:
            self._astores[loop] = AsyncStore(cast("Any", self._server), self._group)
        return self._astores[loop]

    def _call(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        options: Options,
        given: frozenset[str],
    ) -> Call[Any]:
        """A call; its arguments are looked at where the function is known here."""
        check_module(name)
        function = self.functions.get(name)
        if function is None:
            return Call(name, args, kwargs, options, given, _as_it_is)
        try:
            function.signature.check(args, kwargs)
        except TypeError as error:
            raise BadTypeError(f"{name} is not called like that: {error}") from error
        return Call(name, args, kwargs, options, given, function.signature.result)

    def _entries(self, calls: Sequence[Call[Any]], now: float | None) -> list[tuple[Item, ItemOptions]]:
        return [(call.item(self._format, self._serializer), call.options.of_item(now)) for call in calls]

    def _handles(
        self,
        calls: Sequence[Call[T]],
        entries: Sequence[tuple[Item, ItemOptions]],
        answers: Sequence[bool],
    ) -> list[Handle[T]]:
        return [
            Handle(self, item.id, call.options.queue, call.convert, added=added)
            for call, (item, _), added in zip(calls, entries, answers, strict=True)
        ]


def _cpus() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _by_queue(members: Sequence[Any]) -> dict[str, list[int]]:
    """The numbers of calls or handles, by the queue that each is for."""
    numbers: dict[str, list[int]] = {}
    for number, member in enumerate(members):
        queue = member.options.queue if isinstance(member, Call) else member.queue
        numbers.setdefault(queue, []).append(number)
    return numbers


def _asks_time(calls: Sequence[Call[Any]]) -> bool:
    return any(call.options.asks_time for call in calls)


def _reused(calls: Sequence[Call[Any]], answers: Sequence[bool]) -> list[str]:
    """Ids that were chosen and just added: what was noted of an earlier job of that id is over."""
    return [
        call.options.id
        for call, added in zip(calls, answers, strict=True)
        if added and call.options.id is not None
    ]


def _list(state: str) -> Literal["ready", "delayed", "leased", "dead", "kept"]:
    if state not in _LISTS:
        raise BadArgumentError(f"jobs are listed by state: {', '.join(_LISTS)}; not {state!r}")
    return _LISTS[state]


def _as_it_is(value: Any) -> Any:
    return value
