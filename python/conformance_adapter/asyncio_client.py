"""The adapter of `leaseq.aio.WorkQueue`: python -m conformance_adapter.asyncio_client.

A task for each call, which is cancelled where the call is.
"""

import asyncio
import json
import sys
import threading
from typing import Any

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

import leaseq.aio
import leaseq.aio.registry
import leaseq.worker.aio.registry
from conformance_adapter import dispatch, job_client, values
from conformance_adapter.dispatch import METHODS, HarnessError, Session, end_handler, held_answer
from conformance_adapter.messages import MAX_LINE_BYTES, Json
from leaseq import LeaseqError, QueueClosedError
from leaseq.worker.aio import Worker


class Ending:
    """The way in which handlers end, and an event that is set when they may."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.how = ""


class Loop:
    """The client's own loop on a queue, which holds what it leases until it is to finish."""

    def __init__(self, queues: list[leaseq.aio.WorkQueue], options: Json) -> None:
        self._ending = Ending()
        self._handed_out = asyncio.Semaphore(0)
        self._left_off = False
        self._worker = Worker(queues, self._hold, **options)
        self.run = asyncio.create_task(self._worker.run())

    async def _hold(self, _item: leaseq.aio.LeasedItem) -> object:
        ending = self._ending
        self._handed_out.release()
        await ending.begun.wait()
        return end_handler(ending.how)

    async def handed_out(self, count: int) -> None:
        """Wait until `count` more items were handed to handlers."""
        for _ in range(count):
            await self._handed_out.acquire()

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

    async def finish(self) -> int:
        """Let the handlers end. Return the number of completed items, once the loop has ended."""
        self.leave_off()
        self._ending.begun.set()
        return await self.run


class Adapter:
    """Answers messages."""

    def __init__(self) -> None:
        self._session: Session
        self._url = ""
        self._cluster: redis.asyncio.RedisCluster | None = None
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._holding: dict[Any, asyncio.Task[None]] = {}
        self._loops: dict[str, Loop] = {}

    def take(self, message: Json) -> None:
        """Start to answer a message."""
        number = message["id"]
        task = self._calls[number] = asyncio.create_task(self._answer(message))
        task.add_done_callback(lambda _: self._calls.pop(number))

    async def end(self) -> None:
        """Close all connections."""
        loops = [loop.run for loop in self._loops.values()]
        for task in (*self._calls.values(), *self._holding.values(), *loops):
            task.cancel()
        for each in self._session.forget_all() if self._url else []:
            await each.close()
        await asyncio.gather(*self._calls.values(), *self._holding.values(), *loops, return_exceptions=True)
        if self._cluster is not None:
            await self._cluster.aclose()

    async def _answer(self, message: Json) -> None:
        try:
            reply = await getattr(self, f"_{message['op']}")(message)
        except HarnessError as error:
            reply = {"harness": str(error)}
        except (asyncio.CancelledError, QueueClosedError):
            reply = {"cancelled": True}
        except LeaseqError as error:
            reply = {"error": values.error(error, list)}
        except Exception as error:  # noqa: BLE001 (what is no error of the client is to be seen)
            reply = {"harness": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": message["id"], **reply}), flush=True)

    async def _hello(self, message: Json) -> Json:
        self._url = values.patient(message["url"])
        if message.get("cluster", False):
            self._cluster = redis.asyncio.RedisCluster.from_url(self._url)
        self._session = Session(
            leaseq.aio, leaseq.aio.registry, leaseq.worker.aio.registry, self._cluster or self._url
        )
        return {"ok": dispatch.hello("Python, asyncio", "asyncio")}

    async def _open(self, message: Json) -> Json:
        self._session.open(message["queue"], message["name"], message["group"])
        return {"ok": {}}

    async def _close(self, message: Json) -> Json:
        for each in self._session.forget(message["queue"]):
            await each.close()
        return {"ok": {}}

    async def _close_client(self, _: Json) -> Json:
        for each in self._session.forget_all():
            await each.close()
        return {"ok": {}}

    async def _cancel(self, message: Json) -> Json:
        if task := self._calls.get(message["call"]):
            task.cancel()
        return {"ok": {}}

    async def _call(self, message: Json) -> Json:
        name, handle, args = message["method"], message["queue"], message["args"]
        if name in job_client.METHODS:
            return await self._of_jobs(job_client.METHODS[name](self._session, handle, args), name)
        if name in METHODS:
            plan = METHODS[name](self._session, handle, args)
            try:
                return {"ok": plan.shape(await plan.run())}
            except QueueClosedError:
                raise
            except LeaseqError as error:
                return {"error": values.error(error, plan.shape)}
        if name == "pipeline":
            return {"ok": await self._pipeline(handle, args)}
        if name in dispatch.OF_LOOPS:
            return {"ok": await self._of_loop(name, handle, args)}
        item = self._session.held(handle, args)
        if name == "held":
            return {"ok": held_answer(item)}
        if name == "hold":
            return await self._hold(item)
        await asyncio.shield(self._holding[item])
        return {"ok": {}}

    async def _of_jobs(self, plan: dispatch.Plan, name: str) -> Json:
        try:
            return {"ok": plan.shape(await plan.run())}
        except (LeaseqError, TimeoutError) as error:
            answer = job_client.ending(error) if name == "job_result" else None
            if answer is None:
                raise
            return {"ok": answer}

    async def _of_loop(self, name: str, handle: str, args: Json) -> Json:
        if name == "work":
            queues = self._session.worked_on(handle, args)
            self._loops[handle] = Loop(queues, dispatch.worker_options(args))
        elif name == "handed_out":
            await self._loops[handle].handed_out(args["count"])
        elif name == "end_handlers":
            self._loops[handle].end_handlers(args.get("how", ""))
        elif name == "leave_off":
            self._loops[handle].leave_off()
        else:
            return {"completed": await self._loops.pop(handle).finish()}
        return {}

    async def _hold(self, item: leaseq.aio.LeasedItem) -> Json:
        begun = asyncio.Event()

        async def hold() -> None:
            async with item:
                begun.set()
                await asyncio.Event().wait()  # until the client cancels this task: the lease is lost

        self._holding[item] = asyncio.create_task(hold())
        await begun.wait()
        return {"ok": {}}

    async def _pipeline(self, handle: str | None, args: Json) -> list[list[str]]:
        queue, calls = self._session.queue(handle), dispatch.pipeline_calls(args)
        made = redis.asyncio.RedisCluster if self._cluster else redis.asyncio.Redis
        async with made.from_url(self._url, retry=Retry(NoBackoff(), 0)) as client:
            pipe = client.pipeline(transaction=args["transaction"])
            for items, options in calls:
                await queue.add_items(items, **options, pipe=pipe)
            return dispatch.pipeline_answers(args, await pipe.execute())


async def serve() -> None:
    """Answer what comes in, until nothing more does."""
    adapter = Adapter()
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        line = b"x"
        while line:
            line = sys.stdin.buffer.readline(MAX_LINE_BYTES)
            loop.call_soon_threadsafe(lines.put_nowait, line)

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        adapter.take(json.loads(line))
    await adapter.end()


if __name__ == "__main__":
    asyncio.run(serve())
