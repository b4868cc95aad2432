# Generated from _aio/app.py by tools/unasync.py: do not edit.
"""The App: functions by name, queues by name, a server."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import tzinfo
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast, overload

from leaseq._sync.queue import WorkQueue
from leaseq.callables import refuse_generators
from leaseq.durability import Durability
from leaseq.durations import Duration, seconds_of
from leaseq.errors import BadArgumentError
from leaseq.jobs._sync.chain import Chain, ChainHandle
from leaseq.jobs._sync.decorators import Decorator, Scheduler
from leaseq.jobs._sync.function import Enqueuer, JobFunction
from leaseq.jobs._sync.handle import Handle
from leaseq.jobs._sync.schedules import Schedules
from leaseq.jobs.call import Call, HeaderSource, check_source, listed
from leaseq.jobs.clients import Clients, Server
from leaseq.jobs.codecs import Codec
from leaseq.jobs.context import Context
from leaseq.jobs.cron.schedule import Missed, Schedule
from leaseq.jobs.cron.trigger import CronTrigger, IntervalTrigger, Trigger, zone
from leaseq.jobs.definition import Definition, checked_name, name_of
from leaseq.jobs.envelope import VERSION, Envelope
from leaseq.jobs.errors import ResultNotKept
from leaseq.jobs.info import JobInfo, Status
from leaseq.jobs.middleware import M, check
from leaseq.jobs.options import CallOptions, FunctionOptions
from leaseq.jobs.program import Program
from leaseq.jobs.serializer import Format, Serializer
from leaseq.jobs.settings import Settings
from leaseq.jobs.signals import R, Signal
from leaseq.jobs.store._sync import chain_search
from leaseq.jobs.store._sync.client import ListState
from leaseq.keys import QueueKeys

P = ParamSpec("P")
T = TypeVar("T")
Hook = Callable[[], Any]
H = TypeVar("H", bound=Hook)
S = TypeVar("S", bound=HeaderSource)


class App:
    """Functions that run elsewhere: what `leaseq.jobs.App` and `leaseq.jobs.aio.App` have in common.

    Attributes:
        program: what its workers run.
    """

    def __init__(
        self,
        server: Server | None = None,
        *,
        group: str = "jobs",
        queue: str = "default",
        format: Format = "json",  # noqa: A002
        serializer: Serializer | None = None,
        durable: Durability | None = None,
        codec: Codec | Sequence[Codec] | None = None,
        routes: Mapping[str, str] | None = None,
    ) -> None:
        settings = Settings(group, queue, format, serializer, durable, codec, routes)
        self.program = Program(Clients(server, settings))

    @classmethod
    def of_program(cls, program: Program) -> Self:
        """An App with the functions, schedules, hooks and server of another one."""
        app = cls.__new__(cls)
        app.program = program
        return app

    @property
    def _clients(self) -> Clients:
        return self.program.clients

    @property
    def _settings(self) -> Settings:
        return self.program.clients.settings

    @property
    def schedules(self) -> Schedules:
        """The schedules on the App's server: list, pause, resume and trigger them."""
        return Schedules(self._clients, self.program.schedules)

    @property
    def group(self) -> str:
        """The group of all its queues."""
        return self._settings.group

    @property
    def queues(self) -> list[str]:
        """The names of the queues that the App knows: its default queue, those of its functions and those of its routes."""
        return self._settings.queues

    @property
    def functions(self) -> dict[str, JobFunction[Any, Any]]:
        """The functions that were decorated, by name."""
        return {name: JobFunction(self._clients, each) for name, each in self._settings.functions.items()}

    def queue(self, name: str | None = None) -> WorkQueue:
        """Return the `WorkQueue` of the jobs of queue `name`, for its dead letters, statistics and limits.

        None is the App's default queue. The App closes it. Raises BadNameError.
        """
        return self._clients.sync.store.queue(name or self._settings.defaults.queue)

    @overload
    def job(
        self, target: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]], /
    ) -> JobFunction[P, T]: ...
    @overload
    def job(self, target: Callable[P, Coroutine[Any, Any, T]], /) -> JobFunction[P, T]: ...
    @overload
    def job(self, target: Callable[Concatenate[Context, P], T], /) -> JobFunction[P, T]: ...
    @overload
    def job(self, target: Callable[P, T], /) -> JobFunction[P, T]: ...
    @overload
    def job(
        self, target: None = None, /, *, name: str | None = None, **options: Unpack[FunctionOptions]
    ) -> Decorator: ...

    def job(self, target: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
        """Decorate a function, `@app.job` or `@app.job(queue="mail", ...)`. Its calls can then be enqueued.

        Jobs refer to the function by its module and name, or by `name`. If its first parameter is annotated with
        `Context`, it gets the context of the job. For the options see `leaseq.jobs.options.Options`. Raises BadTypeError,
        BadArgumentError, BadNameError.
        """
        if target is not None:
            return self._register(target, name, {})
        QueueKeys(self._settings.defaults.with_(options, FunctionOptions).queue)
        return cast("Decorator", lambda function: self._register(function, name, options))

    def handle(self, job_id: str, queue: str | None = None) -> Handle[Any]:
        """Return a handle of a job that was enqueued before, by its id.

        The job is looked for in `queue`, or without one in the queues that the App knows, when you use the handle. Its result is
        converted to the annotation of its function, if the App has that, it fits, and the job is not longer than 4096 bytes.
        """
        return Handle(self._clients, job_id, queue or "", _by_id=True)

    def _register(self, function: Any, name: str | None, given: Mapping[str, Any]) -> JobFunction[Any, Any]:
        if isinstance(function, JobFunction) and any(
            each.call.function == function.name for each in self.program.schedules
        ):
            raise BadArgumentError(
                f"{function.name} has a schedule, which would not run this job: write @app.cron or @app.every above @app.job"
            )
        chosen, options = name_of(function, name), self._settings.defaults.with_(given, FunctionOptions)
        if "queue" not in given:
            options = self._settings.routed(chosen, options)
        return JobFunction(self._clients, self._settings.define(chosen, function, options))

    def function(self, name: str) -> Enqueuer[..., Any]:
        """Return a function by its name, to enqueue it: `app.function("mail.send").with_options(...).enqueue(1)`.

        It has the methods of `JobFunction`. The function need not be defined in this program; then arguments are not checked
        against its parameters. Raises BadArgumentError.
        """
        known = self._settings.functions.get(name)
        if known is not None:
            return JobFunction(self._clients, known)
        template = Envelope(v=VERSION, function=checked_name(name))
        return Enqueuer(self._clients, template, self._settings.routed(name, self._settings.defaults), None)

    def enqueue(self, name: str, /, *args: Any, **kwargs: Any) -> Handle[Any]:
        """Enqueue a call of a function by its name, with these arguments. Return its handle.

        The function need not be defined in this program. Raises the errors of `JobFunction.enqueue`.
        """
        return self.function(name).enqueue(*args, **kwargs)

    def enqueue_many(self, calls: Iterable[Call[T]], *, pipe: Any = None) -> list[Handle[T]]:
        """Enqueue calls. Return a handle for each, in order.

        Takes one round trip for each queue and 256 calls, and another with the option `id` or `at`. Raises BadTypeError and
        the errors of `WorkQueue.add_items`. If a round trip fails, `answers` of the error has true (added), false (its id
        exists) or None (no room, or not answered) for each call, up to the last answered call.

        With `pipe`, a pipeline of a redis client of the same server, the jobs are only queued there, to be enqueued
        with your commands when it is executed, in MULTI all or none. It then returns for each queue and 256 jobs a list of
        times of creation (one job: a time), -1 for a job without room. The ids are by chance: raises BadArgumentError for
        jobs with `id`, `unique` or `throttle`. No signal is emitted. Raises BadTypeError for another pipeline.
        """
        given = listed(calls)
        if pipe is not None:
            answers = [(job_id, True) for job_id in self._clients.sync.queue_in(pipe, given)]
        else:
            answers = self._clients.sync.enqueue_many(given)
        return [
            Handle(self._clients, job_id, call.options.queue, call.convert, added)
            for call, (job_id, added) in zip(given, answers, strict=True)
        ]

    def chain(self, first: Call[T]) -> Chain[T]:
        """Return a chain of jobs, to run one after the other: `app.chain(f.call(1)).then(g.partial()).enqueue()`.

        Nothing is enqueued before `Chain.enqueue`. Raises BadTypeError.
        """
        return Chain(self._clients, listed([first])[0])

    def find_chain(self, chain_id: str, queue: str | None = None) -> ChainHandle[Any]:
        """Return the handle of a chain that was enqueued before, also by another program, by its `id`.

        Its first job is looked for in `queue`, or without one in the queues that the App knows. Each job that is there names
        those behind it: if none of the first 65 is, and no result of one is kept, raises ResultNotKept. Takes five round
        trips, and four more for each queue if the first job is gone with its result.
        """
        client = self._clients.sync
        jobs = chain_search.find(client, chain_id, queue or "")
        if not jobs:
            raise ResultNotKept(f"there is no job of a chain {chain_id!r}, and no result of one")
        known = {job.function: self._settings.functions.get(job.function) for job in jobs}
        return ChainHandle(
            self._clients,
            [Handle(self._clients, job.id, job.queue, _result_of(known[job.function])) for job in jobs],
        )

    def statuses(self, handles: Iterable[Handle[Any]]) -> list[Status]:
        """Return the status of many jobs, in order. Takes two round trips for each queue and 256 jobs.

        If the App knows several queues, handles that were made from an id alone are first looked for in each, with two more
        round trips.
        """
        return self._clients.sync.statuses(handles)

    def inspect_jobs(self, handles: Iterable[Handle[Any]]) -> list[JobInfo]:
        """Return all that is known of many jobs, in order.

        Takes four round trips for each queue and 256 jobs; see `statuses`.
        """
        return self._clients.sync.inspect(handles)

    def jobs(
        self, state: ListState, *, queue: str | None = None, offset: int = 0, limit: int = 100
    ) -> list[JobInfo]:
        """Return one page of the jobs of a queue in a state, with all that is known of each.

        `state` is "ready" or "delayed" (also those that wait for another attempt), "running", "failed", or "succeeded"
        (those whose result is kept). `queue` is the App's default queue if it is None. Skips `offset` jobs and has up to
        `limit` (256 at most). Ready jobs are in the order in which they will run, others by time: when they are due, their
        lease ends, they died, or their result is deleted. Takes five round trips, for "succeeded" two more for each 256
        results and failures. Raises BadArgumentError.
        """
        return self._clients.sync.listed(state, queue, offset, limit)

    def cron(
        self,
        line: str,
        *,
        tz: str | tzinfo = "UTC",
        missed: Missed = "last",
        name: str | None = None,
        **options: Unpack[FunctionOptions],
    ) -> Scheduler:
        """Decorate a function, or a `JobFunction`, to run once at each time (slot) of a line of crontab.

        `line` has minute, hour, day of month, month and day of week, and can have a second before them; or it is a
        nickname such as `@hourly`. `tz` is a time zone or its name. `missed` decides about slots at which no worker ran:
        "last" runs the last of them, "all" runs each, "none" runs none that is more than a minute late. `name` is the
        name of the schedule, by default that of the function. The function takes no arguments, except a `Context`. The
        options are those of its jobs, without `id` and `at`; by default no result is kept. Raises BadTypeError,
        BadArgumentError, BadNameError.
        """
        return self._scheduler(CronTrigger(line, zone(tz)), missed, name, options)

    def every(
        self,
        interval: Duration | str,
        *,
        missed: Missed = "last",
        name: str | None = None,
        **options: Unpack[FunctionOptions],
    ) -> Scheduler:
        """Decorate a function, or a `JobFunction`, to run at an interval: slots are the multiples of `interval` since 1970.

        `interval` is a number of seconds of at least 0.001, a timedelta, or text such as "5m". All else is as for `cron`.
        """
        return self._scheduler(IntervalTrigger(seconds_of(interval, "an interval")), missed, name, options)

    def _scheduler(
        self, timetable: Trigger, missed: Missed, name: str | None, options: FunctionOptions
    ) -> Scheduler:
        def schedule(function: Any) -> JobFunction[Any, Any]:
            job: Any = function
            chosen = cast("CallOptions", {"keep": None, **options})
            if not isinstance(function, JobFunction):
                job = self._register(function, name, options)
                chosen = {"keep": chosen["keep"]}  # the function has the others
            call = job.with_options(**chosen).call()
            self.program.schedules.add(Schedule(name or job.name, call, timetable, missed))
            return cast("JobFunction[Any, Any]", job)

        return schedule

    def on_startup(self, hook: H) -> H:
        """Decorate a function, asynchronous or not, that each process of a worker calls before its first job.

        If it raises, that process ends. It is not called in the processes of functions with `fork=True`. Raises
        BadTypeError for a generator function.
        """
        refuse_generators(hook, "a hook")
        self.program.startup.append(hook)
        return hook

    def on_shutdown(self, hook: H) -> H:
        """Decorate a function, asynchronous or not, that each process of a worker calls after its last job.

        Several are called in reverse order. An exception is logged. Raises BadTypeError for a generator function.
        """
        refuse_generators(hook, "a hook")
        self.program.shutdown.append(hook)
        return hook

    def on_fork_shutdown(self, hook: H) -> H:
        """Decorate a function, asynchronous or not, that the process of each job with `fork=True` calls after the job.

        Functions that the job itself registers with `atexit` are called too, and logs are flushed. All together may take
        5 seconds. Raises BadTypeError for a generator function.
        """
        refuse_generators(hook, "a hook")
        self.program.fork_shutdown.append(hook)
        return hook

    def middleware(self, middleware: M) -> M:
        """Decorate a function that takes the `Context` of a job and returns a context manager, in which the job runs.

        It is called and entered where the job runs: in its thread, in the event loop, or in its process. Of
        several, the first is outermost. It is a part of the attempt: an exception that it raises counts as if the function
        had raised it, and the time limit of the job includes it. It cannot make a failed attempt a success. Declare it
        before a worker starts. Raises BadTypeError for a function that does not return a context manager.
        """
        check(middleware)
        self.program.middleware.append(middleware)
        return middleware

    def headers(self, source: S) -> S:
        """Decorate a function that takes a `Call` about to be enqueued and returns headers for it, a dict of strings.

        The function, a plain `def`, is called by `enqueue`, `enqueue_many` and `chain(...).enqueue`, in the thread or event
        loop of the caller, once for each job. Headers that the call already has win. A job has at most 16 headers. If the
        function raises, the caller gets the error, and nothing is enqueued. Jobs of a schedule have no such headers. Raises
        BadTypeError.
        """
        check_source(source)
        self._settings.headers.append(source)
        return source

    def on(self, *signals: Signal) -> Callable[[R], R]:
        """Decorate a function that receives signals of jobs, each as a `JobEvent`: `@app.on("failed")`.

        "enqueued" and "cancelled" are received in the program that enqueues or cancels, in the call, after the server has
        recorded it; their receivers are not coroutine functions. "started", "retried", "succeeded" and "failed" are received
        in a process of the worker, next to the jobs: by coroutine functions in the event loop, by others in a thread, for up
        to 30 s. The last three come when the server has recorded it. If a receiver raises, the exception is logged and
        nothing else changes. A crash of the process can lose a signal. Declare a receiver before a worker starts. Raises
        BadArgumentError, BadTypeError.
        """

        def receive(receiver: R) -> R:
            self._settings.receivers.add(receiver, signals)
            return receiver

        return receive

    def close(self) -> None:
        """Close what it opened for threads. The next call opens connections again."""
        self._clients.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<App of group {self.group!r}, {len(self.functions)} functions>"


def _result_of(function: Definition | None) -> Callable[[Any], Any] | None:
    """Return what converts the result of a function to its annotation; None if the App has no such function."""
    return None if function is None else function.signature.result
