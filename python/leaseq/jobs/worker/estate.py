"""The estate of a process that died: its leases, and what its death means for each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from leaseq.jobs.worker.lease_journal import HeldLease, JournalReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Estate:
    """Leases to settle.

    Attributes:
        why: how the process ended, as in "was ended by SIGKILL".
        worker: its id.
        charged: the job that was running; its attempt has failed.
        suspects: jobs that were running together; one may be why. Each runs alone before it is charged.
        free: what had not started, or was cut by a stop: it goes back uncounted.
    """

    why: str
    worker: str
    charged: tuple[HeldLease, ...] = ()
    suspects: tuple[HeldLease, ...] = ()
    free: tuple[HeldLease, ...] = ()

    @classmethod
    def of_worker(cls, reader: JournalReader, why: str, *, blameless: bool) -> Self:
        """The estate of a worker's process; `blameless` if it was killed for nothing that a job of its did."""
        begun, rest = reader.left()
        if blameless:
            return cls(why=why, worker=reader.worker, free=(*begun, *rest))
        if len(begun) == 1:
            return cls(why=why, worker=reader.worker, charged=tuple(begun), free=tuple(rest))
        return cls(why=why, worker=reader.worker, suspects=tuple(begun), free=tuple(rest))

    def after_death(self, reader: JournalReader, why: str, *, blameless: bool) -> Self:
        """Return the rest of it when the process that settled it died as well: the suspect that ran then is to blame."""
        begun, rest = reader.left()
        suspects = (*reader.unsettled(self.suspects), *rest, *(begun if blameless else ()))
        return type(self)(
            why=why,
            worker=reader.worker or self.worker,
            charged=(*reader.unsettled(self.charged), *(() if blameless else begun)),
            suspects=suspects,
            free=tuple(reader.unsettled(self.free)),
        )

    def without_trials(self) -> Self:
        """Return the same for a worker that stops: suspects go back uncounted."""
        return type(self)(
            why=self.why, worker=self.worker, charged=self.charged, free=(*self.suspects, *self.free)
        )

    def __iter__(self) -> Iterator[HeldLease]:
        yield from self.charged
        yield from self.suspects
        yield from self.free

    def __len__(self) -> int:
        return len(self.charged) + len(self.suspects) + len(self.free)
