"""The App: functions by name, queues by name, a server."""

import os
from collections.abc import Awaitable, Callable
from datetime import tzinfo
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, cast, overload

from leaseq import commands
from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs.base import Server
from leaseq.jobs.call import as_it_is
from leaseq.jobs.context import Context
from leaseq.jobs.cron.schedule import Missed, Schedule
from leaseq.jobs.cron.schedules import Schedules
from leaseq.jobs.cron.timetable import Crontab, Interval, Timetable, zone
from leaseq.jobs.decorators import Decorator, Scheduler
from leaseq.jobs.enqueuing import Enqueuing
from leaseq.jobs.function import JobFunction, name_of
from leaseq.jobs.handle import Handle
from leaseq.jobs.listing import Listing
from leaseq.jobs.options import CallOptions, FunctionOptions, Options
from leaseq.jobs.serializer import Format, Serializer
from leaseq.jobs.worker.service import Service, WorkerOptions
from leaseq.jobs.worker.supervisor import Supervisor
from leaseq.keys import QueueKeys

P = ParamSpec("P")
T = TypeVar("T")
Hook = Callable[[], Any]
H = TypeVar("H", bound=Hook)


class App(Enqueuing, Listing):
    """Functions that run elsewhere.

        app = leaseq.jobs.App("redis://localhost")

        @app.job(retries=2)
        async def send(address: str) -> int: ...

        handle = send.enqueue("a@example.org")     # or: await send.aenqueue(...)

    `server` is a URL or a redis-py client as for WorkQueue; with a client, the methods of its colour work. All queues
    are of one `group`. `queue` is where jobs go that say no other. Arguments and results are JSON, or MessagePack by
    `format`, or what a `serializer` makes of them. A server is not asked for before the first call.

    Raises BadNameError, BadTypeError, BadArgumentError.
    """

    def __init__(
        self,
        server: Server | None = None,
        *,
        group: str = "jobs",
        queue: str = "default",
        format: Format = "json",  # noqa: A002
        serializer: Serializer | None = None,
    ) -> None:
        super().__init__(server, group=group, queue=queue, form=format, serializer=serializer)
        self.schedules = Schedules(self)
        self._startup: list[Hook] = []
        self._shutdown: list[Hook] = []

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
            return self._found_again(target, name, **options)
        if target is not None:
            return self._register(target, name, self._defaults)
        chosen = self._defaults.with_(options, FunctionOptions)
        QueueKeys(chosen.queue)
        return cast("Decorator", lambda function: self._register(function, name, chosen))

    def _found_again(
        self, job_id: str, name: str | None, *, queue: str | None = None, **others: Any
    ) -> Handle[Any]:
        if name is not None or others:
            raise BadArgumentError(
                f"app.job({job_id!r}) finds a job again by its id, and takes its queue alone; a function is decorated with"
                f" @app.job(name={job_id!r}, ...)"
            )
        return Handle(self, job_id, queue or "", as_it_is)

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
        """Decorate a function, asynchronous or not, that each process of a worker calls before its first job.

        The processes of functions with `fork=True` are forked from one that began before it, and have nothing of it.
        """
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
        forked: call it before there are threads. Raises BadTypeError where the App has a client instead of a URL,
        BadArgumentError, WorkerFailedError where the processes cannot begin.
        """
        if not isinstance(self._server, str | None):
            raise BadTypeError(
                "the processes of run_worker each open the server by themselves: give the App its URL, or run one worker"
                " with arun_worker and a client of asyncio"
            )
        count = _cpus() if processes is None else commands.whole(processes, "processes")
        if count < 1:
            raise BadArgumentError("processes must be at least 1; arun_worker runs jobs in this one")
        if self.is_embedded:
            self._store  # noqa: B018 (opened: the server ends with this process, not with one of those)
        else:
            self.close()
        return Supervisor(self, count, options).run()

    def __repr__(self) -> str:
        return f"<App of group {self._group!r}, {len(self.functions)} functions>"


def _cpus() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
