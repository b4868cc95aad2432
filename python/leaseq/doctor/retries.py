"""The client: whether it repeats commands."""

from typing import Any

import redis

from leaseq.doctor.finding import Verdict, advice, ok


def retries(client: redis.Redis | redis.RedisCluster) -> Verdict:
    """A client that repeats failed commands can add an item twice: once before and once after it was completed.

    leaseq's own calls use none of a client's retries; calls with `pipe=` and the program's own commands do.
    """
    times = _times(client)
    if times is None:
        return ok("the client repeats nothing")
    return advice(
        f"the client repeats a failed command {times}: what it sends in its own"
        " pipelines (pipe=) may happen twice. leaseq's other calls are not repeated",
        "make the client with retry=Retry(NoBackoff(), 0)",
    )


class _RepeatedError(Exception):
    """A call was made once more."""


def _times(client: redis.Redis | redis.RedisCluster) -> str | None:
    """Return how often; None for never."""
    if isinstance(client, redis.RedisCluster):
        cluster: Any = client
        retry = getattr(cluster, "retry", None)
        if retry is None:  # redis-py before 6
            return f"up to {cluster.cluster_error_retry_attempts} times"
    else:
        # only a connection knows what redis-py makes of its options; a new one does not connect
        pool: Any = client.connection_pool
        retry = pool.connection_class(**pool.connection_kwargs).retry
    if not hasattr(retry, "get_retries"):  # redis-py before 6
        return "at times" if _repeats(retry) else None
    count: int = retry.get_retries()
    return None if count == 0 else f"up to {count if count > 0 else 'endless'} times"


def _repeats(retry: Any) -> bool:
    """Return whether it makes a call again that failed."""
    failed = False

    def call() -> None:
        nonlocal failed
        if failed:
            raise _RepeatedError
        failed = True
        raise redis.ConnectionError

    try:
        retry.call_with_retry(call, lambda _: None)
    except _RepeatedError:
        return True
    except redis.ConnectionError:
        return False
    return False
