"""A process that a handler forks, and that goes on after its worker is gone, keeps no connection of the worker open."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any, Self

import pytest
from support import programs, servers
from support.redis_probe import blocked, load

import leaseq
from leaseq import Item

if TYPE_CHECKING:
    import redis
    from support.client_flavours import ClientFlavour

HOUR = 3600.0
NAME = "forking"


def connections(client: redis.Redis) -> list[Any]:
    """Return the worker's connections, as the server lists them."""
    listed: Any = client.client_list()
    return [each for each in listed if each["name"] == NAME]


class Program:
    """A worker in a separate process, and the process that its handler forks."""

    def __init__(self, flavour: str, url: str, concurrency: int) -> None:
        arguments = programs.command("forking_worker", flavour, f"{url}?client_name={NAME}", str(concurrency))
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, env=programs.environment())
        self.child = 0

    def wait_for_child(self) -> None:
        """Learn its number."""
        assert self.process.stdout is not None
        self.child = int(self.process.stdout.readline())

    def kill_child(self) -> None:
        """End the process that was forked, if it is there."""
        child, self.child = self.child, 0
        if child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def kill(self) -> None:
        """End the worker; what it forked goes on."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_child()
        self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()


# with one slot there is no wait while the handler forks, and the worker then waits on a connection that was idle
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_killed_worker_leaves_no_waiter_to_what_it_forked(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, producer: leaseq.WorkQueue, concurrency: int
) -> None:
    load(redis_client)
    with Program(flavour.name, url, concurrency) as program:
        producer.add_item(Item(b"fork"))
        program.wait_for_child()
        servers.wait_until(lambda: producer.stats().completed == 1)
        blocked(redis_client, 1)
        assert connections(redis_client)
        program.kill()
        servers.wait_until(lambda: not connections(redis_client))
        os.kill(program.child, 0)  # it is there
        producer.add_item(Item(b"", id="a"))
        item = producer.lease(HOUR)
        assert item is not None
        assert (item.id, item.attempt) == ("a", 1)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_worker_goes_on_after_its_handler_forked(
    flavour: ClientFlavour, redis_client: redis.Redis, url: str, producer: leaseq.WorkQueue, concurrency: int
) -> None:
    load(redis_client)
    with Program(flavour.name, url, concurrency) as program:
        producer.add_item(Item(b"fork"))
        program.wait_for_child()
        servers.wait_until(lambda: producer.stats().completed == 1)
        blocked(redis_client, 1)
        before = {each["id"] for each in connections(redis_client)}
        producer.add_item(Item(b"", id="while it is there"))
        servers.wait_until(lambda: producer.stats().completed == 2)
        os.kill(program.child, 0)
        program.kill_child()
        for number in range(3):
            blocked(redis_client, 1)
            producer.add_item(Item(b"", id=str(number)))
            servers.wait_until(lambda count=number + 3: producer.stats().completed == count)  # type: ignore[misc]
        assert program.process.poll() is None
        assert before <= {each["id"] for each in connections(redis_client)}  # it had to open none again
