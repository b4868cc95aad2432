"""The queue, of its parts."""

from leaseq._aio.adding import Adding
from leaseq._aio.dead import DeadLetters
from leaseq._aio.leasing import Leasing
from leaseq._aio.outcomes import Outcomes
from leaseq._aio.tending import Tending


class WorkQueue(Adding, Leasing, Outcomes, DeadLetters, Tending):
    """A queue on a Redis or Valkey server. Tasks may share one object; close it, or use it as a context manager.

    `server` is a URL (redis://, rediss://, unix://, redis+sentinel://HOSTS/SERVICE, redis+cluster://HOSTS, or
    embedded:DIR for a server of its own in a folder) or a redis.asyncio client (single, Sentinel, Cluster); without
    one, $REDIS_URL. A client stays the caller's: it is not closed, and none of its retries are used. `group` decides
    the hash slot and defaults to the name; queues that hand items to each other share a group.

    Raises BadNameError, BadTypeError, NoServerError at once; every call raises the errors of `leaseq.errors`, whose
    `definite` says whether it can have taken effect.
    """
