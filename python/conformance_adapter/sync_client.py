"""The adapter of `leaseq.WorkQueue`: python -m conformance_adapter.sync_client.

With the argument `fork`, its job worker program runs each job in a separate process.

A thread for each call, since any of them may wait. Threads cannot be cancelled: closing the queue ends what waits.
"""

import contextlib
import json
import sys
import threading
from concurrent.futures import Future
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

import leaseq
import leaseq.registry
import leaseq.worker.registry
from conformance_adapter import dispatch, job_client, values
from conformance_adapter.dispatch import METHODS, HarnessError, Session, end_handler, held_answer
from conformance_adapter.messages import MAX_LINE_BYTES, Json
from leaseq import LeaseqError, QueueClosedError
from leaseq.worker import Worker

POLL_SECS = 0.005
"""Pause between two looks at `lost`: threads get no call when a lease is lost."""


class Ending:
    """The way in which handlers end, and an event that is set when they may."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.how = ""


class Loop:
    """The client's own loop on a queue, which holds what it leases until it is to finish."""

    def __init__(self, queues: list[leaseq.WorkQueue], options: Json) -> None:
        self._ending = Ending()
        self._handed_out = threading.Semaphore(0)
        self._left_off = False
        self._worker = Worker(queues, self._hold, **options)
        self._ended: Future[int] = Future()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._ended.set_result(self._worker.run())
        except BaseException as error:  # noqa: BLE001 (`finish` raises it)
            self._ended.set_exception(error)

    def _hold(self, _item: leaseq.LeasedItem) -> object:
        ending = self._ending
        self._handed_out.release()
        ending.begun.wait()
        return end_handler(ending.how)

    def handed_out(self, count: int) -> None:
        """Wait until `count` more items were handed to handlers."""
        for _ in range(count):
            self._handed_out.acquire()

    def end_handlers(self, how: str) -> None:
        """Let the handlers that have an item end like this."""
        ending, self._ending = self._ending, Ending()
        ending.how = how
        ending.begun.set()

    def leave_off(self) -> None:
        """Lease no more; told twice, the worker would not wait for its handlers."""
        if not self._left_off:
            self._left_off = True
            self._worker.stop()

    def finish(self) -> int:
        """Let the handlers end. Return the number of completed items, once the loop has ended."""
        self.leave_off()
        self._ending.begun.set()
        return self._ended.result()


class Adapter:
    """Answers messages."""

    def __init__(self) -> None:
        self._session: Session
        self._url = ""
        self._cluster: bool
        self._guard = threading.Lock()
        self._looking: dict[int, threading.Event] = {}
        self._loops: dict[str, Loop] = {}
        self._holding = contextlib.ExitStack()  # never left: what ends a block early would release its item

    def take(self, message: Json) -> None:
        """Answer a message, or start to."""
        if message["op"] == "call":
            if message["method"] == "lost":
                self._looking[message["id"]] = threading.Event()
            threading.Thread(target=self._answer, args=(message,), daemon=True).start()
        else:
            self._answer(message)

    def end(self) -> None:
        """Close all connections."""
        for each in self._session.forget_all() if self._url else []:
            each.close()

    def _answer(self, message: Json) -> None:
        try:
            reply = getattr(self, f"_{message['op']}")(message)
        except HarnessError as error:
            reply = {"harness": str(error)}
        except QueueClosedError:
            reply = {"cancelled": True}
        except LeaseqError as error:
            reply = {"error": values.error(error, list)}
        except Exception as error:  # noqa: BLE001 (what is no error of the client is to be seen)
            reply = {"harness": f"{type(error).__name__}: {error}"}
        line = json.dumps({"id": message["id"], **reply})
        with self._guard:
            print(line, flush=True)

    def _hello(self, message: Json) -> Json:
        self._url, self._cluster = values.patient(message["url"]), message.get("cluster", False)
        server = redis.RedisCluster.from_url(self._url) if self._cluster else self._url
        self._session = Session(leaseq, leaseq.registry, leaseq.worker.registry, server)
        return {"ok": dispatch.hello("Python", *(sys.argv[1:] or ["threads"]))}

    def _open(self, message: Json) -> Json:
        self._session.open(message["queue"], message["name"], message["group"])
        return {"ok": {}}

    def _close(self, message: Json) -> Json:
        for each in self._session.forget(message["queue"]):
            each.close()
        return {"ok": {}}

    def _close_client(self, _: Json) -> Json:
        for each in self._session.forget_all():
            each.close()
        return {"ok": {}}

    def _cancel(self, message: Json) -> Json:
        looking = self._looking.get(message["call"])
        if looking is None:
            return {"unsupported": "cancel"}
        looking.set()
        return {"ok": {}}

    def _call(self, message: Json) -> Json:
        name, handle, args = message["method"], message["queue"], message["args"]
        if name in job_client.METHODS:
            return self._of_jobs(job_client.METHODS[name](self._session, handle, args), name)
        if name in METHODS:
            plan = METHODS[name](self._session, handle, args)
            try:
                return {"ok": plan.shape(plan.run())}
            except QueueClosedError:
                raise
            except LeaseqError as error:
                return {"error": values.error(error, plan.shape)}
        if name == "pipeline":
            return {"ok": self._pipeline(handle, args)}
        if name in dispatch.OF_LOOPS:
            return {"ok": self._of_loop(name, handle, args)}
        item = self._session.held(handle, args)
        if name == "held":
            return {"ok": held_answer(item)}
        if name == "hold":
            self._holding.enter_context(item)
            return {"ok": {}}
        return self._lost(item, self._looking[message["id"]])

    def _of_jobs(self, plan: dispatch.Plan, name: str) -> Json:
        try:
            return {"ok": plan.shape(plan.run())}
        except (LeaseqError, TimeoutError) as error:
            answer = job_client.ending(error) if name == "job_result" else None
            if answer is None:
                raise
            return {"ok": answer}

    def _of_loop(self, name: str, handle: str, args: Json) -> Json:
        if name == "work":
            queues = self._session.worked_on(handle, args)
            self._loops[handle] = Loop(queues, dispatch.worker_options(args))
        elif name == "handed_out":
            self._loops[handle].handed_out(args["count"])
        elif name == "end_handlers":
            self._loops[handle].end_handlers(args.get("how", ""))
        elif name == "leave_off":
            self._loops[handle].leave_off()
        else:
            return {"completed": self._loops.pop(handle).finish()}
        return {}

    def _lost(self, item: Any, cancelled: threading.Event) -> Json:
        while not item.lost:
            if cancelled.wait(POLL_SECS):
                return {"cancelled": True}
        return {"ok": {}}

    def _pipeline(self, handle: str | None, args: Json) -> list[list[str]]:
        queue, calls = self._session.queue(handle), dispatch.pipeline_calls(args)
        made = redis.RedisCluster if self._cluster else redis.Redis
        with made.from_url(self._url, retry=Retry(NoBackoff(), 0)) as client:
            pipe = client.pipeline(transaction=args["transaction"])
            for items, options in calls:
                queue.add_items(items, **options, pipe=pipe)
            return dispatch.pipeline_answers(args, pipe.execute())


def main() -> None:
    """Answer what comes in, until nothing more does."""
    adapter = Adapter()
    while line := sys.stdin.buffer.readline(MAX_LINE_BYTES):
        adapter.take(json.loads(line))
    adapter.end()


if __name__ == "__main__":
    main()
