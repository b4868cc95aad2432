# Generated from _aio/watch.py by tools/unasync.py: do not edit.
"""A watch of one job: what is known of it, now and whenever that changes."""

import contextlib
from collections.abc import Iterator
from functools import partial

from leaseq import commands, flows
from leaseq._sync import concurrency
from leaseq._sync.queue import WorkQueue
from leaseq._sync.race import race
from leaseq.durations import Duration, deadline_after
from leaseq.flows import Wait
from leaseq.jobs import current_job, info, job_state
from leaseq.jobs.info import JobInfo, JobSnapshot
from leaseq.jobs.job_state import Change
from leaseq.jobs.store._sync.client import Job, JobClient

DIRECT = 16
"""Watches of a client that block, on two connections each. The others look again and again."""

PAUSE_SECS = 0.25
"""Seconds until a watch looks again that saw nothing new behind a wake-up, or has no connections to block on."""


def watched(client: JobClient, job: Job, timeout: Duration | None) -> Iterator[JobInfo]:
    """Yield what is known of a job, now and whenever its status, attempt or progress changes; the last is its end.

    Raises TimeoutError if it has not ended when the time is over.
    """
    until = deadline_after(timeout, concurrency.now)
    queue = client.queue_of(job)
    asking = current_job.current.get()
    if asking is not None:
        asking.refuse_to_block("watch()", "async for info in handle.aio.watch()")
    seen: object = None
    lease, awaited = 0, Change(job.id, 0, 0)
    while True:
        looked_at = concurrency.now()
        (snapshot,) = client.store.snapshots(job.queue, [job.id])
        if (snapshot.outcome.state == "leased") != (snapshot.item.state == "leased"):
            continue  # it changed between two calls
        found = client.info_of(job.queue, snapshot)
        looks_new = seen != (found.status, found.attempt, found.progress)
        if looks_new:
            seen = (found.status, found.attempt, found.progress)
            yield found
        if found.status in info.ENDS:
            return
        lease, awaited = _next(snapshot, lease, awaited)
        left = until - concurrency.now()
        if left <= 0:
            raise info.unsuccessful(job.id, job.queue, snapshot)
        if concurrency.now() - looked_at > flows.WAIT_CAP / 2:
            continue  # the next change can be past, and what it leaves for the wait with it
        is_crowded = len(client.watching) >= DIRECT
        if is_crowded or not looks_new:
            concurrency.sleep(min(PAUSE_SECS, left))
        if is_crowded:
            continue
        with contextlib.nullcontext() if asking is None else asking.waiting(queue.group, queue.name):
            _wait(client, queue, awaited, min(flows.WAIT_CAP, left))


def _wait(client: JobClient, queue: WorkQueue, change: Change, seconds: float) -> None:
    """Wait until a job changes so, its outcome is there, or the time is over."""
    look = commands.outcome(queue.keys, [change.id])
    keys = [job_state.change_key(queue.keys, change), queue.keys.result + change.id]
    waits = [Wait(flows.element_of(key), seconds, look) for key in keys]
    place = object()
    client.watching.add(place)
    try:
        race([partial(queue.executor.wait, wait) for wait in waits], lambda _: True, lambda _, __: None)
    finally:
        client.watching.discard(place)


def _next(snapshot: JobSnapshot, lease: int, awaited: Change) -> tuple[int, Change]:
    """Return the token of the lease, 0 without one, and the change that a worker will publish next: in this lease, or in the next.

    A worker deletes its note before it releases the item. Until the release it stays the change that was awaited in this
    lease, which ends each wait at once.
    """
    item, state = snapshot.item, snapshot.state
    if item.state != "leased":
        return 0, Change(item.id, item.attempt + 1, 0)
    if state.token == item.token:
        return item.token, Change(item.id, item.attempt, state.n + 1)
    return item.token, awaited if lease == item.token else Change(item.id, item.attempt, 0)
