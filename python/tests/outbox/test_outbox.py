"""Writing to the outbox: what is committed is the item that an enqueue would have added, and nothing else is written."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from support.servers import plain_client

import leaseq
from leaseq.errors import BadArgumentError, BadIdError, BadNameError, BadTypeError
from leaseq.jobs import App, aio
from leaseq.outbox.sqlalchemy import Outbox, table

if TYPE_CHECKING:
    from support.outbox_shop import Shop


def test_a_job_is_enqueued_once_its_transaction_is_committed(shop: Shop) -> None:
    with shop.engine.connect() as connection:
        job_id = shop.outbox.add(connection, shop.confirm.call(1))
        assert shop.relay_once() == 0
        connection.commit()
    assert shop.app.handle(job_id).status() == "unknown"
    assert shop.relay_once() == 1
    assert shop.work() == [1]
    assert shop.app.handle(job_id).result(timeout=0) == 1
    assert shop.waiting() == []


def test_nothing_of_a_transaction_that_is_rolled_back_is_enqueued(shop: Shop) -> None:
    shop.fail_to_order(1)
    shop.order(2)
    shop.fail_to_order(3)
    assert shop.relay_once() == 1
    assert shop.work() == [2]


@pytest.mark.parametrize("option", [{"unique": True}, {"throttle": "1m"}])
def test_a_job_that_an_enqueue_looks_at_first_is_refused(shop: Shop, option: Any) -> None:
    once = shop.confirm.with_options(**option)
    with shop.engine.begin() as connection:
        with pytest.raises(BadArgumentError, match="unique or throttled"):
            shop.outbox.add(connection, once.call(1))
        with pytest.raises(BadArgumentError, match="unique or throttled"):
            shop.outbox.add(connection, shop.app.chain(once.call(1)).call())
    assert shop.waiting() == []


def test_sessions_and_connections_write_alike(shop: Shop) -> None:
    with Session(shop.engine) as session, session.begin():
        shop.outbox.add(session, shop.confirm.call(1))
    registry = scoped_session(sessionmaker(shop.engine))
    shop.outbox.add(registry, shop.confirm.call(2))
    registry.commit()
    registry.remove()
    with shop.engine.begin() as connection:
        shop.outbox.add(connection, shop.confirm.call(3))
    shop.relay_once()
    assert shop.work() == [1, 2, 3]


def test_asyncio_writes_the_same(shop: Shop) -> None:
    outbox = shop.outbox.aio

    async def write() -> None:
        engine = create_async_engine(shop.database.replace("sqlite:", "sqlite+aiosqlite:"))
        async with AsyncSession(engine) as session, session.begin():
            await outbox.add(session, shop.confirm.call(1))
        async with AsyncSession(engine) as session:
            await outbox.add(session, shop.confirm.call(2))  # not committed
        async with engine.begin() as connection:
            await outbox.add(connection, shop.confirm.call(3))
            await outbox.add_item(connection, leaseq.Item(b"x"), "plain")
            with pytest.raises(BadTypeError, match="is for asyncio"):
                shop.outbox.add(connection, shop.confirm.call(4))  # type: ignore[arg-type]
        await engine.dispose()

    asyncio.run(write())
    assert shop.relay_once() == 3
    assert shop.work() == [1, 3]


def stored(url: str, queue: str, group: str, item_id: str) -> list[Any]:
    """Return all that the server has of an item, except for its times."""
    with leaseq.WorkQueue(queue, url, group=group) as opened, plain_client(url) as client:
        info = opened.inspect(item_id)
        assert info is not None
        data = client.hget(opened.keys.key("items"), item_id)
        extra = client.hget(opened.keys.key("meta"), f"\0{item_id}")
    return [info.state, info.priority, info.keep, info.expires - info.created, info.attempt, data, extra]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"priority": -3, "retries": None, "expires": None, "keep": None},
        {"delay": 3600, "expires": 60, "keep": 5, "headers": {"trace": "7f", "more": "é"}},
        {"at": 2e9, "queue": "mail", "timeout": 1, "backoff": [1, 2], "description": "one", "attempt": 2},
    ],
)
@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_the_item_is_that_of_an_enqueue(
    shop: Shop, options: Any, form: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = time.time()
    with App(shop.url, format=form) as app, monkeypatch.context() as frozen:
        frozen.setattr(time, "time", lambda: at)
        chosen = app.function("confirm").with_options(**options)
        app.headers(lambda call: {"function": call.function})
        ours = chosen.with_options(id="ours").enqueue(1, more="é")
        outbox = Outbox(app)
        with shop.engine.begin() as connection:
            outbox.add(connection, chosen.with_options(id="theirs").call(1, more="é"))
    assert shop.relay_once() == 1
    found, expected = (stored(shop.url, ours.queue, "jobs", each) for each in ("theirs", "ours"))
    assert found[3] == pytest.approx(expected[3], abs=60)  # of the machine, which may stall
    assert found[:3] + found[4:] == expected[:3] + expected[4:]


def test_a_plain_item_has_its_options_and_headers(shop: Shop) -> None:
    item = leaseq.Item(b"\xff\0", headers={"trace": "\udc80"}, content_type="")
    with shop.engine.begin() as connection:
        item_id = shop.outbox.add_item(
            connection, item, "orders", priority=3, max_attempts=0, keep=5, not_before=time.time() + 3600
        )
        shop.outbox.add_item(connection, leaseq.Item("in a group"), "orders", "shop")
    assert item_id == item.id
    assert shop.relay_once() == 2
    with leaseq.WorkQueue("orders", shop.url) as queue:
        assert [each.id for each in queue.list_items("delayed").items] == [item_id]
        queue.promote(item_id)
        leased = queue.lease(60, timeout=0)
        assert leased is not None
        assert (leased.data, leased.headers, leased.content_type) == (b"\xff\0", {"trace": "\udc80"}, "")
        assert leased.keep == 5
    with leaseq.WorkQueue("orders", shop.url, group="shop") as queue:
        assert queue.stats().ready == 1


def test_a_delay_counts_from_the_write(shop: Shop) -> None:
    before = time.time()
    job_id = shop.order(1, delay=3600)
    shop.relay_once()
    due = shop.app.handle(job_id).info().due
    assert before + 3600 <= due + 0.001
    assert due <= time.time() + 3600


def test_what_has_expired_is_not_handed_on(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    dead = shop.order(1)
    with shop.engine.begin() as connection:
        dropped = shop.confirm.with_options(dead_on_expiry=False).call(2)
        job_id = shop.outbox.add(connection, dropped)
        shop.outbox.add_item(connection, leaseq.Item(b"", id="kept"), "q", expires_in=60, dead_on_expiry=True)
        text = sa.func.replace(shop.outbox.table.c.item, '"expires":', '"expires":1,"was":')
        connection.execute(shop.outbox.table.update().values(item=text))
    assert shop.relay_once() == 2
    assert f"{job_id} of queue default of group jobs expired" in caplog.text
    with leaseq.WorkQueue("q", shop.url) as queue:
        time.sleep(0.002)
        queue.light_clean()
        assert [each.id for each in queue.dead_letters()] == ["kept"]
    assert shop.app.queue().light_clean().died == 1
    assert shop.app.handle(dead).status() == "failed"
    assert shop.waiting() == []


def test_a_chain_is_one_row(shop: Shop) -> None:
    chain = shop.app.chain(shop.confirm.call(1)).then(shop.confirm.partial())
    with shop.engine.begin() as connection:
        shop.outbox.add(connection, chain.call())
    assert shop.relay_once() == 1
    assert shop.work() == [1, 1]


def test_wrong_arguments_are_refused_where_they_are_made(shop: Shop) -> None:
    outbox: Any = shop.outbox
    with shop.engine.begin() as connection:
        for wrong, error, message in (
            (lambda: outbox.add(connection, shop.confirm), BadTypeError, r"as in fn.call\(1\)"),
            (lambda: outbox.add_item(connection, b"data", "q"), BadTypeError, "wrap the data"),
            (lambda: outbox.add_item(connection, leaseq.Item(b"", id=""), "q"), BadIdError, "1 to 256"),
            (lambda: outbox.add_item(connection, leaseq.Item(b""), "a queue"), BadNameError, "name"),
            (lambda: outbox.add_item(connection, leaseq.Item(b""), "q", delay="x"), BadTypeError, "delay"),
            (lambda: Outbox().add(connection, shop.confirm.call(1)), BadArgumentError, "has no App"),
            (lambda: Outbox(outbox).add(connection, shop.confirm.call(1)), BadTypeError, "takes an App"),
        ):
            with pytest.raises(error, match=message):
                wrong()
    assert shop.waiting() == []


def test_the_app_may_be_that_of_asyncio_and_the_table_have_another_name(shop: Shop) -> None:
    metadata = sa.MetaData()
    outbox = Outbox(aio.App(shop.url), metadata, name="mail_outbox")
    assert table(metadata, "mail_outbox") is outbox.table
    outbox.table.create(shop.engine)
    with shop.engine.begin() as connection:
        outbox.add(connection, shop.confirm.call(1))
        assert connection.execute(sa.text("SELECT count(*) FROM mail_outbox")).scalar() == 1
