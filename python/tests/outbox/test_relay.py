"""The relay: order, batches, several at once, queues without room, rows that cannot be handed on, servers that go away."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from support.job_app import until
from support.outbox_shop import Shop

import leaseq
from leaseq.access_rules import rules
from leaseq.errors import BadArgumentError, BadTypeError, NotDurableError, UnavailableError
from leaseq.outbox import Relay, sqlalchemy

if TYPE_CHECKING:
    from support.postgres import PostgresServer
    from support.servers import StartServer

MANY = 600


def order_many(shop: Shop, count: int = MANY) -> None:
    """Write jobs in one transaction."""
    with shop.engine.begin() as connection:
        for number in range(count):
            shop.outbox.add(connection, shop.confirm.call(number))


def queued(shop: Shop) -> list[str]:
    """The ids of the jobs that are ready, in order."""
    found: list[str] = []
    while page := shop.app.queue().list_items("ready", offset=len(found), limit=256).items:
        found += [each.id for each in page]
    return found


def test_jobs_are_handed_on_in_the_order_of_their_rows(shop: Shop) -> None:
    order_many(shop)
    ids = [row.item_id for row in shop.waiting()]
    assert shop.relay_once() == MANY
    assert queued(shop) == ids


def test_relays_at_once_hand_on_each_row_once(shop: Shop) -> None:
    order_many(shop)
    ids = [row.item_id for row in shop.waiting()]
    done: list[int] = []

    def relay() -> None:
        with shop.relay() as opened:
            while opened.left():
                done.append(opened.run_once())

    threads = [threading.Thread(target=relay) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) == MANY
    assert sorted(queued(shop)) == sorted(ids)
    assert shop.app.queue().stats().added == MANY


def test_a_relay_hands_on_until_it_is_stopped(shop: Shop) -> None:
    with shop.relaying():
        for number in range(3):
            shop.order(number)
            shop.until_handed_on()
    shop.order(3)
    assert len(shop.waiting()) == 1
    assert shop.work() == [0, 1, 2]


def test_a_full_queue_waits_and_others_do_not(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    queue = shop.app.queue()
    queue.configure(max_items=2)
    for number in range(4):
        shop.order(number)
    shop.order(9, queue="mail")
    assert shop.relay_once() == 3
    assert [(row.queue, row.tried) for row in shop.waiting()] == [("default", None)] * 2
    caplog.clear()
    with shop.relaying():
        until(lambda: "is full" in caplog.text)
        queue.configure(max_items=4)
        shop.until_handed_on()
    assert "queue default of group jobs: works again" in caplog.messages
    assert shop.work() == [0, 1, 2, 3]


def test_rows_that_cannot_be_handed_on_do_not_hold_up_the_others(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    columns: dict[str, Any] = {"queue": "default", "queue_group": "jobs", "created": 0}
    with shop.engine.begin() as connection:
        insert = shop.outbox.table.insert()
        connection.execute(insert.values(**columns, item_id="unreadable", item="{"))
        connection.execute(insert.values(**columns, item_id="empty", item='{"id":"","data":""}'))
        shop.outbox.add(connection, shop.confirm.call(1))
        connection.execute(insert.values(**columns | {"queue": "a b"}, item_id="nowhere", item="{}"))
        shop.outbox.add_item(connection, leaseq.Item(b"", id="high"), "default", "jobs", priority=99)
        large = leaseq.Item(b"x" * 2_000_000, id="large")
        shop.outbox.add_item(connection, large, "default", "jobs")
        shop.outbox.add(connection, shop.confirm.call(2))
    with shop.relay() as relay:
        assert (relay.run_once(), relay.refused) == (2, 5)
        assert not relay.left()
    errors = {row.item_id: row.error for row in shop.waiting()}
    for item_id, reason in {
        "unreadable": "not JSON",
        "empty": "1 to 256 bytes",
        "nowhere": "name of a queue",
        "high": "priority must be",
        "large": "longer than this queue takes",
    }.items():
        assert reason in errors[item_id]
        assert any(item_id in line and reason in line for line in caplog.messages)
    assert shop.work() == [1, 2]


def test_an_id_that_is_queued_is_not_added_twice(shop: Shop) -> None:
    shop.order(1, id="order-1")
    shop.order(1001, id="order-1")
    assert shop.relay_once() == 2
    assert shop.work() == [1]


def test_an_id_whose_earlier_result_is_kept_is_added_again(shop: Shop) -> None:
    """As with `enqueue`: only a job that was added since the relay first tried is taken for that of the row."""
    shop.confirm.with_options(id="order-1").enqueue(1)
    assert shop.work() == [1]
    shop.order(2, id="order-1")
    assert shop.relay_once() == 1
    assert shop.work() == [1, 2]


def test_an_id_that_was_cancelled_before_is_added_again(shop: Shop) -> None:
    assert shop.confirm.with_options(id="order-1").enqueue(1).cancel()
    shop.order(2, id="order-1")
    assert shop.relay_once() == 1
    assert shop.app.handle("order-1").status() == "ready"
    shop.app.queue().remove("order-1")
    assert shop.app.handle("order-1").status() == "unknown"


def test_a_server_that_is_restarted(
    own_server: StartServer, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = own_server("--appendonly", "yes", "--appendfsync", "always")
    with Shop(server.url, database) as shop, shop.relaying():
        shop.order(1)
        shop.until_handed_on()
        server.kill()
        shop.order(2)
        until(lambda: "the server: " in caplog.text)
        server.start()
        shop.until_handed_on()
        shop.order(3)
        shop.until_handed_on()
        assert shop.work() == [1, 2, 3]
    assert [line.partition(": ")[0] for line in caplog.messages] == ["the server"] * 2


@pytest.mark.slow
def test_a_database_that_goes_away(
    url: str, postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    with Shop(url, postgres.new_database()) as shop, shop.relaying():
        shop.order(1)
        shop.until_handed_on()
        postgres.crash()
        until(lambda: "the relay tries again" in caplog.text)
        postgres.start()
        shop.engine.dispose()
        shop.order(2)
        shop.until_handed_on()
        assert shop.work() == [1, 2]
    assert [line.partition(": ")[0] for line in caplog.messages] == [f"the database {shop.engine.url!r}"] * 2


def test_a_row_stays_until_replicas_have_its_job(own_server: StartServer, database: str) -> None:
    with Shop(own_server().url, database) as shop:
        shop.order(1)
        with shop.relay(durable=leaseq.Replicas(1, timeout=0.01)) as relay, pytest.raises(NotDurableError):
            relay.run_once()
        assert len(shop.waiting()) == 1
        assert shop.relay_once() == 1
        assert shop.work() == [1]
        assert shop.app.queue().stats().added == 1


def test_the_rights_of_a_client_of_jobs_are_enough(own_server: StartServer, database: str) -> None:
    server = own_server()
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "relay", *rules("job-client", "secret"))
    with Shop(server.url, database) as shop:
        shop.confirm.with_options(id="order-1").enqueue(1).cancel()
        shop.order(1, id="order-1")
        with shop.engine.begin() as connection:
            shop.outbox.add_item(connection, leaseq.Item(b"x"), "orders", delay=60, priority=3, keep=5)
        url = server.url.replace("redis://", "redis://relay:secret@")
        with Relay(url, sqlalchemy.rows(shop.engine)) as relay:
            assert relay.run_once() == 2
        assert shop.work() == [1]


def test_one_run_reports_a_server_that_is_away(closed_url: str, database: str) -> None:
    with Shop(closed_url, database) as shop:
        shop.order(1)
        with pytest.raises(UnavailableError):
            shop.relay_once()
        assert len(shop.waiting()) == 1


def test_pauses_between_looks_grow_up_to_poll(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def stopped(_: Relay, pause: float) -> bool:
        pauses.append(pause)
        return len(pauses) > 12

    monkeypatch.setattr(Relay, "_stopped_within", stopped)
    with shop.relay(poll=0.3) as opened:
        assert opened.run() == 0
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.0, 0.3)


def test_wrong_arguments(shop: Shop) -> None:
    with pytest.raises(BadArgumentError, match="poll must be above 0"):
        shop.relay(poll=0)
    with pytest.raises(BadTypeError, match="durable"):
        shop.relay(durable=1)


def test_the_name_of_a_database_has_no_password() -> None:
    engine = sa.create_engine("postgresql+psycopg://shop:secret@localhost/shop")
    assert sqlalchemy.rows(engine).name == "the database postgresql+psycopg://shop:***@localhost/shop"
