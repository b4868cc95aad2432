# Generated from _aio/sentinels.py by tools/unasync.py: do not edit.
"""The Sentinels of a set of servers, which say what server is its primary."""

from collections.abc import Mapping
from typing import Any

from redis import ConnectionError as RedisConnectionError
from redis import RedisError, sentinel

from leaseq._sync import concurrency
from leaseq._sync.connection import Connection
from leaseq.endpoint import Endpoint, endpoint
from leaseq.errors import BadTypeError

ASK_SECS = 1.0
"""The longest that one Sentinel is waited for before the next is asked (LQ-CLIENT-22)."""

FRESH_SECS = 1.0
"""For how long an answer is used for further connections."""


class Sentinels:
    """The Sentinels that a client of redis-py names, asked one after the other by connections of ours."""

    def __init__(self, pool: Any) -> None:
        """`pool` is that of a client for a Sentinel set. Raises BadTypeError, BadArgumentError for settings that do not do."""
        if not pool.is_master:
            raise BadTypeError(
                "leaseq writes, so it takes what master_for() of a Sentinel gives, not slave_for()"
            )
        self._set: Any = pool.sentinel_manager
        kind: Any = type(self._set)
        if kind.discover_master is not sentinel.Sentinel.discover_master:
            raise BadTypeError(
                f"the Sentinels of this client are of a custom class, {kind.__module__}.{kind.__qualname__}; leaseq asks"
                " Sentinels itself, so it has to have redis-py's class as it is"
            )
        self._service: str = pool.service_name
        pools = [each.connection_pool for each in self._set.sentinels]
        self._places = [endpoint(each.connection_kwargs, each.connection_class) for each in pools]
        self._known: tuple[str, int] | None = None
        self._known_until = 0.0

    def forget(self) -> None:
        """Ask again for the next connection."""
        self._known = None

    def primary(self, until: float) -> tuple[str, int]:
        """Return the address of the primary, by `until` on `concurrency.now`. Raises errors of redis-py."""
        if self._known is not None and concurrency.now() < self._known_until:
            return self._known
        failure: Exception | None = None
        places = list(self._places)
        for number, place in enumerate(places):
            left = (until - concurrency.now()) / (len(places) - number)
            try:
                found = self._ask(place.within(min(left, ASK_SECS)))
            except (RedisError, OSError) as error:
                failure = error.with_traceback(None)  # else it holds this frame, and that holds it
                continue
            if found is not None:
                # it is asked first for the next connection
                self._places = [place, *(each for each in places if each is not place)]
                self._known, self._known_until = found, concurrency.now() + FRESH_SECS
                return found
        raise failure or RedisConnectionError(f"no Sentinel knows a primary of {self._service!r} that is up")

    def _ask(self, place: Endpoint) -> tuple[str, int] | None:
        """Return the address that one Sentinel gives; None if it knows no primary that is up."""
        until = concurrency.now() + place.connect_secs
        connection = Connection.open(place)
        try:
            connection.send("SENTINEL", "MASTERS")
            masters = connection.read(until - concurrency.now())
        finally:
            connection.close()
        for each in masters:
            state = _state(each)
            if state.get("name") == self._service and self._is_up(state):
                # there is no public name, and before redis-py 6 no such setting
                forced: str | None = getattr(self._set, "_force_master_ip", None)
                return forced or state["ip"], int(state["port"])
        return None

    def _is_up(self, state: Mapping[str, str]) -> bool:
        flags = set(state["flags"].split(","))
        others = int(state["num-other-sentinels"])
        return (
            "master" in flags and not flags & {"s_down", "o_down"} and others >= self._set.min_other_sentinels
        )


def _state(fields: Any) -> dict[str, str]:
    """Return what a Sentinel says of a primary: a map, or by RESP2 names and values in turns."""
    pairs = fields.items() if isinstance(fields, dict) else zip(fields[::2], fields[1::2], strict=True)
    return {name.decode(): value.decode() for name, value in pairs}
