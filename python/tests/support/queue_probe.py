"""What several tests ask a queue or its server, of whatever flavour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.client_flavours import unwrap

from leaseq import Finished

if TYPE_CHECKING:
    import redis


def look(queue: Any, *ids: str) -> list[tuple[str, bytes]]:
    """State and content of outcomes, without waiting."""
    return [(outcome.state, outcome.content) for outcome in queue.outcomes(ids)]


def finished(item: Any, then: Any = (), **options: Any) -> Finished:
    """What finish_items takes, of whatever flavour."""
    return Finished(unwrap(item), then=unwrap(list(then)), **options)


def due_for_a_beat(*items: Any) -> None:
    """As if a third of their leases had passed: entered, they are extended at once. The leases can be long then."""
    for item in map(unwrap, items):
        item._since -= item._lease_secs / 3


def calls(client: redis.Redis) -> int:
    """How many scripts the server has run since the statistics were reset."""
    stats: dict[str, Any] = client.info("commandstats")
    return sum(stats.get(name, {"calls": 0})["calls"] for name in ("cmdstat_evalsha", "cmdstat_eval"))
