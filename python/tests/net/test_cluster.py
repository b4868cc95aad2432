"""A cluster of three nodes: every operation, and a slot that moves while clients are at work."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest
import redis
from redis.crc import key_slot
from support import servers
from support.background_worker import background_worker
from support.client_flavours import unwrap
from support.servers import TIMEOUT_SECS

import leaseq
from leaseq import Item
from leaseq._aio import route as aio
from leaseq._sync import route as sync
from leaseq.endpoint import error_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.client_flavours import ClientFlavour

pytestmark = [pytest.mark.usefixtures("cap_of_an_hour"), pytest.mark.each_server]

ROUTES: dict[str, Any] = {"sync": sync, "asyncio": aio}
KEYS = ("items", "meta", "ready", "delayed", "leased", "dead", "state", "wake", "counters")


class Slot:
    """The slot of one queue, and the clients of the node that has it and of another."""

    def __init__(self, nodes: servers.RedisCluster, name: str) -> None:
        self.name = name
        self.nodes = nodes
        self.clients = [node.client(decode_responses=True) for node in nodes.nodes]
        self.ids: list[str] = [self.ask(client, "CLUSTER", "MYID") for client in self.clients]
        self.number = self.ask(self.clients[0], "CLUSTER", "KEYSLOT", f"{{{name}}}")
        self.source = next(i for i, client in enumerate(self.clients) if self.owns(client))
        self.target = (self.source + 1) % 3

    @staticmethod
    def ask(client: redis.Redis, *words: str | int) -> Any:
        """Run a command on one node."""
        return client.execute_command(*words)  # type: ignore[no-untyped-call]

    def owns(self, client: redis.Redis) -> bool:
        """Return whether a node serves the slot."""
        try:
            client.exists(f"leaseq:{{{self.name}}}:{self.name}:state")
        except redis.ResponseError:
            return False
        return True

    def begin(self) -> None:
        """Mark the slot as migrating."""
        self.ask(
            self.clients[self.target], "CLUSTER", "SETSLOT", self.number, "IMPORTING", self.ids[self.source]
        )
        self.ask(
            self.clients[self.source], "CLUSTER", "SETSLOT", self.number, "MIGRATING", self.ids[self.target]
        )

    def move(self, *parts: str) -> None:
        """Move keys of the queue."""
        for part in parts or KEYS:
            key = f"leaseq:{{{self.name}}}:{self.name}:{part}"
            self.ask(
                self.clients[self.source],
                "MIGRATE",
                "127.0.0.1",
                self.nodes.nodes[self.target].port,
                key,
                0,
                5000,
            )

    def end(self) -> None:
        """Hand the slot over."""
        for client in (self.clients[self.target], self.clients[self.source], *self.clients):
            self.ask(client, "CLUSTER", "SETSLOT", self.number, "NODE", self.ids[self.target])
        self.source, self.target = self.target, (self.target + 1) % 3

    def blocked(self, count: int) -> None:
        """Wait until `count` clients are blocked on the slot's node."""
        client = self.clients[self.source]
        servers.wait_until(lambda: client.info("clients")["blocked_clients"] == count)

    def close(self) -> None:
        """Close the connections."""
        for client in self.clients:
            client.close()


@pytest.fixture
def slot_of(nodes: servers.RedisCluster) -> Iterator[Callable[[str], Slot]]:
    """The slot of a queue by name."""
    with contextlib.ExitStack() as stack:

        def make(name: str) -> Slot:
            slot = Slot(nodes, name)
            stack.callback(slot.close)
            return slot

        yield make


def test_a_slot_that_had_no_node_is_looked_for_again(
    flavour: ClientFlavour, nodes: servers.RedisCluster
) -> None:
    """A failed primary was not replaced when the topology was read."""
    queue = flavour.queue(f"orphan-{flavour.name}", flavour.cluster_client(nodes.url))
    queue.add_item(Item(b"x", id="a"))
    topology = unwrap(queue).executor.route._topology
    topology._nodes[key_slot(unwrap(queue).executor.key.encode())] = None
    with pytest.raises(leaseq.UnavailableError, match="no node of the cluster has the slot"):
        queue.stats()
    assert queue.stats().ready == 1


def test_a_pipeline_of_a_cluster(flavour: ClientFlavour, nodes: servers.RedisCluster) -> None:
    """LQ-SCRIPT-3: adding in the caller's cluster pipeline."""
    client = flavour.cluster_client(nodes.url)
    queue = flavour.queue(f"pipe-{flavour.name}", client)
    pipe = client.pipeline()
    queue.add_item(Item(b"x", id="a"), pipe=pipe)
    queue.add_items([Item(b"x", id="b"), Item(b"x", id="c")], pipe=pipe)
    answers = flavour.run(pipe.execute())
    assert answers[0] > 0
    assert len(answers[1]) == 2
    assert queue.stats().ready == 3


def test_a_slot_that_has_moved(
    flavour: ClientFlavour, nodes: servers.RedisCluster, slot_of: Callable[[str], Slot]
) -> None:
    """LQ-CLUSTER-3, LQ-BLOCK-5: MOVED between calls and under a blocked worker, whose wake-up comes from the new node."""
    queue = flavour.queue(f"moved-{flavour.name}", flavour.cluster_client(nodes.url))
    other = flavour.queue(f"moved-{flavour.name}", flavour.cluster_client(nodes.url))
    slot = slot_of(queue.name)
    queue.add_item(Item(b"x", id="a"))
    item = queue.lease(60)
    assert item is not None
    waiting = flavour.start(other.lease, 30, timeout=TIMEOUT_SECS)
    slot.blocked(1)
    slot.begin()
    slot.move()
    slot.end()
    assert queue.extend(item, 30)
    slot.blocked(1)
    queue.add_item(Item(b"x", id="b"))
    assert waiting.result(TIMEOUT_SECS).id == "b"
    assert queue.complete(item)
    assert queue.stats().completed == 1


def test_a_slot_that_moves_under_an_idle_worker(
    flavour: ClientFlavour, nodes: servers.RedisCluster, slot_of: Callable[[str], Slot]
) -> None:
    """The lease that was sent with the block is redirected too: the worker looks at the new node, and blocks there."""
    queue = flavour.queue(f"worker-{flavour.name}", flavour.cluster_client(nodes.url))
    slot = slot_of(queue.name)
    with background_worker(flavour, queue, lambda _: None, lease_secs=3600) as work:
        slot.blocked(1)
        slot.begin()
        slot.move()
        slot.end()
        slot.blocked(1)
        queue.add_item(Item(b"x"))
        servers.wait_until(lambda: queue.stats().completed == 1)
        work.stop()
        assert work.result() == 1


def test_a_slot_that_migrates(
    flavour: ClientFlavour, nodes: servers.RedisCluster, slot_of: Callable[[str], Slot]
) -> None:
    """LQ-CLUSTER-3: TRYAGAIN while half of the keys are there, waited for with growing pauses; then ASK; nothing twice."""
    client = flavour.cluster_client(nodes.url)
    queue = flavour.queue(f"migrates-{flavour.name}", client)
    slot = slot_of(queue.name)
    assert queue.add_items([Item(b"x", id=str(n)) for n in range(10)])
    leased = queue.lease_items(4, 60)
    slot.begin()
    slot.move("items", "ready")
    adding = flavour.start(queue.add_item, Item(b"x", id="new"))
    completing = flavour.start(queue.complete, leased[0])
    leasing = flavour.start(queue.lease, 60, timeout=20)
    began = time.monotonic()
    while time.monotonic() - began < 0.5:
        assert not adding.done()
        assert not completing.done()
        time.sleep(0.02)
    slot.move()  # every key is at the new node, which says TRYAGAIN as long as a key that a script may need is missing
    slot.end()
    assert adding.result(TIMEOUT_SECS) is True
    assert completing.result(TIMEOUT_SECS) is True
    item = leasing.result(TIMEOUT_SECS)
    assert item is not None
    waiting = flavour.start(queue.remove_items, [str(n) for n in range(1, 10)])
    assert len(waiting.result(TIMEOUT_SECS)) == 9
    idle = flavour.start(queue.lease_items, 10, 60, timeout=15)
    assert [got.id for got in idle.result(TIMEOUT_SECS)] == ["new"]
    stats = queue.stats()
    assert (stats.added, stats.completed, stats.removed, stats.items) == (11, 1, 9, 1)


@pytest.mark.slow
def test_a_slot_that_stays_halfway(
    flavour: ClientFlavour, nodes: servers.RedisCluster, slot_of: Callable[[str], Slot]
) -> None:
    """LQ-CLUSTER-3, LQ-ERROR-4: a migration that hangs is a definite error in the end, and no busy loop for a waiter."""
    queue = flavour.queue(f"hangs-{flavour.name}", flavour.cluster_client(nodes.url))
    slot = slot_of(queue.name)
    queue.add_item(Item(b"x", id="a"), delay=3600)
    waiting = flavour.start(queue.lease, 60, timeout=0.5)
    slot.blocked(1)
    slot.begin()
    slot.move("items")
    before = sum(client.info("stats")["total_commands_processed"] for client in slot.clients)
    with pytest.raises(leaseq.ServerError) as caught:
        queue.add_item(Item(b"x", id="b"))
    assert caught.value.definite
    with pytest.raises(leaseq.ServerError):
        waiting.result(20)
    after = sum(client.info("stats")["total_commands_processed"] for client in slot.clients)
    assert after - before < 400
    slot.move()
    slot.end()
    assert queue.add_item(Item(b"x", id="b"))
    assert queue.stats().items == 2


@pytest.mark.promise("G18")
def test_a_slot_that_stays_halfway_is_waited_for_within_the_limit(
    flavour: ClientFlavour, nodes: servers.RedisCluster, slot_of: Callable[[str], Slot]
) -> None:
    """LQ-CLUSTER-5: the pauses behind TRYAGAIN took 9 s, whatever the time limit."""
    client = flavour.cluster_client(nodes.url, socket_timeout=0.5, socket_connect_timeout=0.5)
    queue = flavour.queue(f"pauses-{flavour.name}", client)
    slot = slot_of(queue.name)
    queue.add_item(Item(b"x", id="a"), delay=3600)
    slot.begin()
    slot.move("items")
    began = time.monotonic()
    with pytest.raises(leaseq.ServerError) as caught:
        queue.add_item(Item(b"x", id="b"))
    assert caught.value.definite
    assert 0.3 < time.monotonic() - began < 2.0
    slot.move()
    slot.end()
    assert queue.add_item(Item(b"x", id="b"))


@pytest.mark.slow
def test_a_node_that_restarts(
    flavour: ClientFlavour, nodes: servers.RedisCluster, slot_of: Callable[[str], Slot]
) -> None:
    """LQ-FAIL-5, LQ-ERROR-4: definite errors while it is away, no stale connection afterwards."""
    queue = flavour.queue(f"restart-{flavour.name}", flavour.cluster_client(nodes.url))
    slot = slot_of(queue.name)
    queue.add_item(Item(b"x", id="a"))
    node = nodes.nodes[slot.source]
    node.stop()
    with pytest.raises(leaseq.LeaseqError) as caught:
        queue.stats()
    assert caught.value.definite
    node.start()

    def well() -> bool:
        infos: list[Any] = [client.cluster("info") for client in slot.clients]
        return all(info["cluster_state"] == "ok" for info in infos)

    servers.wait_until(well)
    assert queue.add_item(Item(b"x", id="b"))
    assert queue.stats().items == 1, "this cluster keeps nothing on disk"


@pytest.mark.parametrize("how", ["MOVED", "ASK"])
def test_a_node_that_does_not_say_its_host(
    flavour: ClientFlavour, nodes: servers.RedisCluster, how: str
) -> None:
    """As with cluster-preferred-endpoint-type unknown-endpoint: it is where the one is that says so."""
    client = flavour.cluster_client(nodes.url)
    found: Any = ROUTES[flavour.name].route(client)
    port = nodes.nodes[1].port
    connection = flavour.run(found.acquire("{q}", error_reply(f"{how} 1 :{port}")))
    # an empty name would lead to this machine too
    assert connection.endpoint.host == "127.0.0.1"
    assert (connection.endpoint.port, connection.asking) == (port, how == "ASK")
    flavour.run(connection.send("PING"))
    assert flavour.run(connection.read()) == b"PONG"
    found.release(connection)
    flavour.run(found.close())


@pytest.mark.parametrize("how", ["MOVED", "ASK"])
def test_the_node_of_a_redirection_is_where_the_client_maps_it(
    flavour: ClientFlavour, nodes: servers.RedisCluster, how: str
) -> None:
    """LQ-CLUSTER-3: nodes behind forwarded ports say what cannot be reached from here."""
    port = nodes.nodes[1].port

    def remap(address: tuple[str, int]) -> tuple[str, int]:
        return ("127.0.0.1", port) if address[0] == "10.255.255.1" else address

    client = flavour.cluster_client(nodes.url, address_remap=remap)
    found: Any = ROUTES[flavour.name].route(client)
    flavour.run(found.node_of("{q}"))  # the slots are known
    connection = flavour.run(found.acquire("{q}", error_reply(f"{how} 1 10.255.255.1:7000")))
    assert (connection.endpoint.host, connection.endpoint.port) == ("127.0.0.1", port)
    found.release(connection)
    flavour.run(found.close())


def test_no_connection_is_used_again_behind_a_refusal_to_write(
    flavour: ClientFlavour, nodes: servers.RedisCluster
) -> None:
    """LQ-CLIENT-25: the node may be a replica by now."""
    found: Any = ROUTES[flavour.name].route(flavour.cluster_client(nodes.url))
    before = flavour.run(found.acquire("{q}"))
    found.release(before)
    again = flavour.run(found.acquire("{q}"))
    assert again is before
    found.release(again)
    found.forget()
    after = flavour.run(found.acquire("{q}"))
    assert after is not before
    assert not before.is_open
    found.release(after)
    flavour.run(found.close())
