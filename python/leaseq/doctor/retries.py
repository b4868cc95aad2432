"""The client: whether it repeats commands by itself."""

from typing import Any

import redis

from leaseq.doctor.finding import Verdict, advice, ok


def retries(client: redis.Redis | redis.RedisCluster) -> Verdict:
    """A client that repeats failed commands can add an item twice: once before and once after it was completed.

    leaseq's own calls use none of a client's retries; calls with `pipe=` and the program's own commands do.
    """
    count = _count(client)
    if count == 0:
        return ok("the client repeats nothing")
    return advice(
        f"the client repeats a failed command up to {count if count > 0 else 'endless'} times: what it sends in its own"
        " pipelines (pipe=) may happen twice. leaseq's other calls are not repeated",
        "make the client with retry=Retry(NoBackoff(), 0)",
    )


def _count(client: redis.Redis | redis.RedisCluster) -> int:
    """How often; -1 is endlessly."""
    if isinstance(client, redis.RedisCluster):
        cluster: Any = client
        retry = cluster.retry
    else:
        # only a connection knows what redis-py makes of its options; a new one does not connect by itself
        pool: Any = client.connection_pool
        retry = pool.connection_class(**pool.connection_kwargs).retry
    count: int = retry.get_retries()
    return count
