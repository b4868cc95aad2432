"""The jobs of a chain, by the id of the first one: in another program, or after a restart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from leaseq.item import derived_id
from leaseq.jobs import info
from leaseq.jobs.envelope import Envelope
from leaseq.jobs.info import JobSnapshot
from leaseq.jobs.store._aio.client import JobClient

LATER_JOBS: Final = 64
"""Later jobs that are looked for if the first one is gone."""


@dataclass(slots=True)
class ChainJob:
    """One job of a chain.

    Attributes:
        id: of the job.
        queue: the name of its queue; "" if that is not known.
        function: the name of its function; "" likewise.
    """

    id: str
    queue: str = ""
    function: str = ""


@dataclass(slots=True)
class _Seen:
    """A job that is there.

    Attributes:
        queue: the name of its queue.
        since: when it was added, or cancelled: seconds since 1970.
        envelope: None if it is gone, and too long for a copy beside its result.
    """

    queue: str
    since: float
    envelope: Envelope | None


async def find(client: JobClient, chain_id: str, queue: str) -> list[ChainJob]:
    """Return the jobs of a chain, in order; none if the server has nothing of it.

    Each job that is there names those behind it. If the first one is gone, with its result, later ones are looked for in
    `queue` and all queues that the App knows. Of an older chain with the same first id, there can be jobs too: the job that
    was added last says what its chain is.
    """
    first = ChainJob(chain_id, queue)
    await client.queue_of(first)
    seen = _seen(first.queue, await client.store.snapshots(first.queue, [chain_id]), 0)
    if not (seen and seen[0].envelope):
        ids = [derived_id(chain_id, number) for number in range(1, LATER_JOBS + 1)]
        for name in dict.fromkeys([first.queue, *client.settings.queues]):
            seen |= _seen(name, await client.store.snapshots(name, ids), 1)
    if not seen:
        return []
    newest = max(seen, key=lambda number: (seen[number].since, number))
    return _jobs(chain_id, seen, newest)


def _seen(queue: str, snapshots: Sequence[JobSnapshot], first: int) -> dict[int, _Seen]:
    """Return the jobs that are there, by their numbers; that of the first snapshot is `first`."""
    return {
        number: _Seen(
            queue, each.outcome.created or (each.state.cancelled or 0) / 1000, info.envelope_of(each)
        )
        for number, each in enumerate(snapshots, first)
        if each.outcome.state != "absent" or each.state.cancelled is not None
    }


def _jobs(chain_id: str, seen: Mapping[int, _Seen], newest: int) -> list[ChainJob]:
    """Return the jobs up to the newest one, and those that it names behind it."""
    jobs = [ChainJob(derived_id(chain_id, number) if number else chain_id) for number in range(newest + 1)]
    for number, job in enumerate(jobs):
        if number in seen:
            job.queue = seen[number].queue
            envelope = seen[number].envelope
            job.function = envelope.function if envelope else ""
    last = seen[newest].envelope
    for number, stage in enumerate(last.then if last else (), newest + 1):
        jobs.append(ChainJob(derived_id(chain_id, number), stage.queue, stage.job.function))
    return jobs
