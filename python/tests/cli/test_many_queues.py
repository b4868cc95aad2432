"""`leaseq queues` and `leaseq doctor --all` with thousands of queues: round trips of the server, not times."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from support import servers
from support.cli_runner import Calls
from support.crowd import fill
from support.redis_probe import EVALS, calls, load

import leaseq
from leaseq import commands
from leaseq._sync import survey
from leaseq._sync.survey import read_all
from leaseq.errors import WrongKeyTypeError
from leaseq.keys import QueueKeys

if TYPE_CHECKING:
    import redis

QUEUES = 3000
FILLED = QUEUES // 10
"""Queues that hold items in each state."""


@pytest.fixture
def call(url: str) -> Calls:
    return Calls(url)


class Traffic:
    """The connections and reads that a server counts from now on."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        load(client)
        client.config_resetstat()

    def counts(self) -> tuple[int, int, int]:
        """Return connections, reads from them, and script calls."""
        stats: Any = self._client.info("stats")
        scripts = calls(self._client, *EVALS)
        return stats["total_connections_received"], stats["total_reads_processed"], scripts


class TestQueues:
    def test_order_and_limit(self, call: Calls, redis_client: redis.Redis) -> None:
        fill(redis_client, 20, filled=4)
        by_name = [each["queue"] for each in call.yes("queues", "--json").records]
        assert by_name == sorted(by_name)
        assert [each["queue"] for each in call.yes("queues", "--json", "--limit", "3").records] == by_name[:3]
        for order in ("items", "ready", "delayed", "leased", "dead"):
            numbers = [each[order] for each in call.yes("queues", "--json", "--sort", order).records]
            assert len(numbers) == 20
            assert numbers == sorted(numbers, reverse=True)
        (first,) = call.yes("queues", "--json", "--sort", "ready", "--limit", "1").records
        assert first["ready"] == 4
        assert call.yes("queues", "--sort", "waited", "--limit", "2").out.count("\n") == 3
        call.refused(2, "'size' is not one of", "queues", "--sort", "size")
        call.refused(2, "'--limit'", "queues", "--limit", "0")

    def test_a_limit_by_name_reads_no_more(self, call: Calls, redis_client: redis.Redis) -> None:
        fill(redis_client, 20, filled=0)
        traffic = Traffic(redis_client)
        call.yes("queues", "--limit", "3")
        assert traffic.counts()[2] == 3

    @pytest.mark.slow
    def test_few_round_trips(self, own_server: servers.StartServer) -> None:
        server = own_server()
        with server.client() as client:
            fill(client, QUEUES, filled=FILLED)
            traffic = Traffic(client)
            done = Calls(server.url).yes("queues")
            connections, reads, scripts = traffic.counts()
        assert done.out.count("\n") == QUEUES + 1
        assert connections <= 4
        assert scripts == QUEUES
        assert reads < QUEUES / 5, "calls are sent together"


class TestDoctor:
    @pytest.mark.slow
    def test_few_round_trips(self, own_server: servers.StartServer) -> None:
        server = own_server("--appendonly", "yes")
        with server.client() as client:
            fill(client, QUEUES, filled=FILLED)
            traffic = Traffic(client)
            done = Calls(server.url)("doctor", "--all")
            connections, reads, scripts = traffic.counts()
        assert re.search(rf"^ok +format +{QUEUES} queues$", done.out, re.MULTILINE)
        assert re.search(rf"^ok +dead +{QUEUES - FILLED} queues$", done.out, re.MULTILINE)
        assert done.out.count("1 dead letters") == FILLED
        assert connections <= 4
        # the counts of each queue; five lists and an inspection of those that hold items
        assert QUEUES + 6 * FILLED <= scripts <= QUEUES + 6 * FILLED + 20
        assert reads < QUEUES / 2


class TestReading:
    """Calls of many queues that are sent together."""

    def test_an_error_is_the_answer_of_its_queue_alone(
        self, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(survey, "TOGETHER", 4)
        keys = fill(redis_client, 10, filled=10)
        redis_client.set(keys[5].key("ready"), "mine")
        answers = read_all(redis_client, [commands.stats(each) for each in keys])
        assert isinstance(answers.pop(5), WrongKeyTypeError)
        assert [answer.dead for answer in answers] == [1] * 9

    def test_a_server_that_knows_no_script(self, redis_client: redis.Redis) -> None:
        keys = fill(redis_client, 3, filled=3)
        redis_client.script_flush()
        answers = read_all(redis_client, [commands.stats(each) for each in keys])
        assert [answer.dead for answer in answers] == [1] * 3

    def test_each_call_without_a_reply_has_an_error(self, redis_client: redis.Redis) -> None:
        """Also the first: the connection ends behind the second call."""
        keys = fill(redis_client, 3, filled=3)
        first, *rest = [commands.stats(each) for each in keys]
        answers = read_all(redis_client, [first, ("QUIT", "now"), *rest])
        assert answers[0].dead == 1
        assert [type(answer).__name__ for answer in answers[2:]] == ["ReplyLostError"] * 2

    def test_a_server_that_is_away(self, own_server: servers.StartServer) -> None:
        server = own_server()
        with server.client() as client:
            server.stop()
            answers = read_all(client, [commands.stats(QueueKeys("q"))] * 3)
        assert [type(answer).__name__ for answer in answers] == ["UnavailableError"] * 3

    def test_a_cluster(self, cluster: servers.RedisCluster) -> None:
        """Each node is asked for its queues."""
        with servers.cluster_client(cluster.url) as client:
            keys = [QueueKeys(f"queue-{number}") for number in range(30)]
            with leaseq.WorkQueue("queue-7", client) as queue:
                queue.add_item(leaseq.Item(b"x"))
            answers = read_all(client, [commands.stats(each) for each in keys])
        assert [answer.items for answer in answers] == [int(number == 7) for number in range(30)]
