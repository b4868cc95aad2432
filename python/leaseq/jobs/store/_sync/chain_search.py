# Generated from _aio/chain_search.py by tools/unasync.py: do not edit.
"""The jobs of a chain, by the id of the first one: in another program, or after a restart."""

from dataclasses import dataclass
from typing import Final

from leaseq.item import derived_id
from leaseq.jobs import info
from leaseq.jobs.info import JobSnapshot
from leaseq.jobs.store._sync.client import JobClient

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


def find(client: JobClient, chain_id: str, queue: str) -> list[ChainJob]:
    """Return the jobs of a chain, in order; none if the server has nothing of it.

    Each job that is there names those behind it. If the first one is gone, with its result, a later one is looked for in
    all queues that the App knows.
    """
    first = ChainJob(chain_id, queue)
    client.queue_of(first)
    found: dict[int, ChainJob] = {}
    (snapshot,) = client.store.snapshots(first.queue, [chain_id])
    _note(found, 0, first.queue, snapshot, chain_id)
    if len(found) <= 1:
        ids = [derived_id(chain_id, number) for number in range(1, LATER_JOBS + 1)]
        for name in client.settings.queues:
            for number, each in enumerate(client.store.snapshots(name, ids), 1):
                _note(found, number, name, each, chain_id)
    return [
        found.get(number) or ChainJob(_id(chain_id, number)) for number in range(max(found, default=-1) + 1)
    ]


def _note(found: dict[int, ChainJob], number: int, queue: str, snapshot: JobSnapshot, chain_id: str) -> None:
    """Note a job of a chain, if it is there, and those that it names."""
    if snapshot.outcome.state == "absent" and snapshot.state.cancelled is None:
        return
    job = info.envelope_of(snapshot)
    found[number] = ChainJob(_id(chain_id, number), queue, "" if job is None else job.function)
    for place, stage in enumerate([] if job is None else job.then, number + 1):
        found.setdefault(place, ChainJob(_id(chain_id, place), stage.queue, stage.job.function))


def _id(chain_id: str, number: int) -> str:
    return derived_id(chain_id, number) if number else chain_id
