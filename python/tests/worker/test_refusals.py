"""A server that refuses counts as away, as does a silent server: one line, growing pauses, no attempt taken, no end of the worker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.background_worker import TIMEOUT_SECS, Latch, RecordingHooks, background_worker
from support.redis_probe import blocked

from leaseq import Item, UnavailableError
from leaseq.worker._aio import completer as aio_completer
from leaseq.worker._sync import completer as sync_completer

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour

HOUR = 3600.0
REFUSALS = {
    "NOREPLICAS": (
        ("CONFIG", "SET", "min-replicas-to-write", "1"),
        ("CONFIG", "SET", "min-replicas-to-write", "0"),
    ),
    "READONLY": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
    "MASTERDOWN": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
}


def until(check: Any) -> None:
    servers.wait_until(check, TIMEOUT_SECS)


def refused(client: Any) -> int:
    """Return how many commands the server has refused."""
    return sum(int(each["count"]) for each in client.info("errorstats").values())


@pytest.mark.promise("G14")
@pytest.mark.parametrize("kind", REFUSALS)
def test_a_server_that_refuses_is_an_outage(
    flavour: ClientFlavour, own_server: servers.StartServer, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """An idle worker, to which a lease of nothing says that all is well, and one handler that returns meanwhile."""
    caplog.set_level(logging.INFO, "leaseq.worker")
    stale = "no" if kind == "MASTERDOWN" else "yes"
    server = own_server("--replica-serve-stale-data", stale)
    refuse, accept = REFUSALS[kind]
    queue, recorded, latch = flavour.queue("q", server.url), RecordingHooks(), Latch()
    queue.add_item(Item(b"", id="a"))
    options: Any = {"hooks": recorded, "lease_secs": HOUR}
    with (
        server.client() as client,
        background_worker(flavour, queue, latch.handler(flavour), **options) as work,
    ):
        latch.reached()
        blocked(client, 1)
        client.execute_command(*refuse)
        unblock(client)
        until(lambda: recorded.of("server_away"))
        latch.open()
        before = refused(client)
        until(lambda: refused(client) >= before + 8)
        assert recorded.of("completed") == []
        client.execute_command(*accept)
        until(lambda: recorded.of("completed") == ["a"])
        until(lambda: recorded.of("server_back"))
        queue.add_item(Item(b"", id="b"))
        until(lambda: recorded.of("completed") == ["a", "b"])
        work.stop()
        assert work.result() == 2
    assert len(recorded.of("server_away")) == len(recorded.of("server_back")) == 1
    assert caplog.text.count("goes on trying") == caplog.text.count("answers again") == 1


def unblock(client: Any) -> None:
    """Let all that wait call again; REPLICAOF has done it."""
    for each in client.client_list():
        if "b" in each["flags"]:
            client.client_unblock(int(each["id"]))


def test_all_releases_of_a_halved_group_are_repeated(
    queue: Any, flavour: ClientFlavour, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LQ-WORK-6: a damaged record has the group halved, then the server is away: nothing of the group stays leased."""
    module: Any = aio_completer if flavour.name == "asyncio" else sync_completer
    end_leases, recorded = module.end_leases, RecordingHooks()
    groups: list[int] = []

    def end_later(queue: Any, items: Any, *rest: Any) -> Any:
        if len(recorded.of("ended")) < 4:
            raise UnavailableError("away, until all are in one group")
        groups.append(len(items))
        if len(groups) == 2:
            raise UnavailableError("away")
        return end_leases(queue, items, *rest)

    def fail(_: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(module, "end_leases", end_later)
    queue.add_items([Item(b"", id=name) for name in "abcd"])
    latch = Latch()
    options: Any = {"concurrency": 4, "hooks": recorded, "lease_secs": HOUR, "backoff": lambda _: HOUR}
    with background_worker(flavour, queue, latch.handler(flavour, fail), **options) as work:
        latch.reached(4)
        redis_client.hset("leaseq:{q}:q:meta", "a", b"damaged")
        latch.open()
        until(lambda: queue.stats().delayed == 3)
        assert groups[:2] == [4, 2]
        work.stop()
        work.result()


@pytest.mark.promise("G14")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["NOREPLICAS", "READONLY"])
def test_an_idle_worker_pauses_while_the_server_refuses(
    flavour: ClientFlavour, own_server: servers.StartServer, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    caplog.set_level(logging.INFO, "leaseq.worker")
    server = own_server()
    refuse, accept = REFUSALS[kind]
    queue, recorded = flavour.queue("q", server.url), RecordingHooks()
    with server.client() as client, background_worker(flavour, queue, lambda _: None, hooks=recorded) as work:
        blocked(client, 1)
        began, before = client.info("server")["server_time_usec"], refused(client)
        client.execute_command(*refuse)
        unblock(client)
        until(lambda: recorded.of("server_away"))
        until(lambda: refused(client) >= before + 6)
        took = client.info("server")["server_time_usec"] - began
        assert took > 300_000, (
            "the pauses grow: 0.1, 0.2, 0.4 s, less up to half; the outage itself ends some calls too"
        )
        assert (recorded.of("server_back"), caplog.text.count("goes on trying")) == ([], 1)
        client.execute_command(*accept)
        until(lambda: recorded.of("server_back"))
        queue.add_item(Item(b"", id="b"))
        until(lambda: recorded.of("completed") == ["b"])
        work.stop()
