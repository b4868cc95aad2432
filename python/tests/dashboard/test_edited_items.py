"""A dead letter is requeued with edited data: under a new id, with its options, before the old one goes."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any, Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.dashboard_site import Browser, browser, everything

import leaseq
from leaseq.dashboard import edit_change
from leaseq.jobs import App
from leaseq.transfer import records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq.commands.completions import AddOptions

EDIT: dict[str, Any] = {"action": "edit", "queue": "q", "id": "a"}


@pytest.fixture
def site(url: str) -> Iterator[Browser]:
    with browser(url, allow=everything) as made:
        yield made


@pytest.fixture
def queue(url: str) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("q", url) as opened:
        yield opened


def die(queue: leaseq.WorkQueue, item: leaseq.Item, **options: Unpack[AddOptions]) -> None:
    queue.add_item(item, **options)
    leased = queue.lease(60, block=False)
    assert leased is not None
    queue.dead_letter(leased, error="x")


def area(page: str) -> str:
    (text,) = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    return html.unescape(text)


def test_the_new_item_has_the_options_of_the_old_one(site: Browser, queue: leaseq.WorkQueue) -> None:
    item = leaseq.Item(b'{"books": 2}', id="a", headers={"trace": "t1"}, content_type="application/json")
    die(queue, item, priority=3, max_attempts=5, keep=60, expires_in=600)
    assert area(site.get("/change", **EDIT)) == '{"books": 2}'
    fields = site.fields(**EDIT)
    new_id = fields["shown_new_id"]
    answer = site.post({**fields, "data": '{"books":\r\n 3}'}, **EDIT)
    assert answer.startswith(f"Added as item {new_id}. The old one: 1 dead letter goes at ")
    info = queue.inspect(new_id)
    assert (info.state, info.priority, info.max_attempts, info.keep) == ("ready", 3, 5, 60)
    assert info.expires == pytest.approx(queue.inspect("a").expires, abs=5)
    (stored,) = records.read(queue, [new_id])
    assert stored is not None
    assert (stored.data, stored.headers) == (b'{"books":\n 3}', {"trace": "t1"})
    assert (stored.content_type, stored.max_attempts) == ("application/json", 5)
    assert "1 dead letter goes at" in site.get("/item", queue="q", id="a")
    again = site.post({**fields, "data": '{"books": 4}'}, 409, **EDIT)
    assert "planned already" in again
    assert queue.stats().ready == 1


def test_a_form_that_is_sent_twice_adds_one_item(site: Browser, queue: leaseq.WorkQueue) -> None:
    die(queue, leaseq.Item(b"two", id="a"))
    fields = {**site.fields(**EDIT), "data": "three"}
    queue.add_item(leaseq.Item(b"three", id=fields["shown_new_id"]))  # the reply of the first time was lost
    assert "this form was sent before" in site.post(fields, 409, **EDIT)
    assert queue.stats().items == 2


def test_what_is_not_right_changes_nothing(site: Browser, queue: leaseq.WorkQueue) -> None:
    die(queue, leaseq.Item(b'{"books": 2}', id="a"))
    fields = site.fields(**EDIT)
    assert "these are not" in site.post({**fields, "data": "{"}, 409, **EDIT)
    long = {**fields, "data": '"' + "x" * edit_change.MAX_EDITED_BYTES + '"'}
    assert "at most 64 KiB are allowed here" in site.post(long, 409, **EDIT)
    queue.configure(max_data=5)
    assert "Nothing was done" in site.post({**fields, "data": '"123456"'}, 409, **EDIT)
    queue.revive("a")
    assert "is ready now" in site.post({**fields, "data": "1"}, 409, **EDIT)
    assert queue.stats().items == 1


def test_long_data_are_not_edited(site: Browser, queue: leaseq.WorkQueue) -> None:
    die(queue, leaseq.Item(b"x" * (edit_change.MAX_EDITED_BYTES + 1), id="a"))
    page = site.get("/change", **EDIT)
    assert "The data have 64 KiB. Up to 64 KiB can be edited here." in page
    assert "<textarea" not in page


def test_the_longest_data_fit_into_a_form(site: Browser, queue: leaseq.WorkQueue) -> None:
    data = bytes(range(128, 256)) * (edit_change.MAX_EDITED_BYTES // 128)
    die(queue, leaseq.Item(data, id="a"))
    fields = site.fields(**EDIT)
    assert fields["shown_form"] == "hex"
    site.post({**fields, "data": area(site.get("/change", **EDIT))}, **EDIT)
    (stored,) = records.read(queue, [fields["shown_new_id"]])
    assert stored is not None
    assert stored.data == data


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="replace")))
def test_data_that_are_not_touched_stay_as_they_are(data: bytes) -> None:
    form, text = edit_change._form(data)
    sent = text.replace("\r\n", "\n").replace("\n", "\r\n")  # as a browser does
    assert edit_change._data(sent, form, b"") == (data, "")


def test_digits_that_are_none_are_refused() -> None:
    assert edit_change._data("0g", "hex", b"") == (b"", "The data must be pairs of hex digits.")


def test_a_failed_job_runs_again_with_other_arguments(site: Browser, url: str) -> None:
    import asyncio

    from leaseq.jobs import aio

    with App(url) as app:

        @app.job(name="shop.pack", retries=0)
        def pack(books: int) -> int:
            return 10 // books

        pack.with_options(id="order-17").enqueue(0)
        worker = aio.App.of_program(app.program)
        asyncio.run(worker.run_worker(burst=True))
        edit: dict[str, Any] = {"action": "edit", "queue": "default", "group": "jobs", "id": "order-17"}
        fields = site.fields(**edit)
        text = area(site.get("/change", **edit))
        site.post({**fields, "data": text.replace('"args":[0]', '"args":[2]')}, **edit)
        asyncio.run(aio.App.of_program(app.program).run_worker(burst=True))
        assert app.handle(fields["shown_new_id"]).result() == 5


def test_without_the_right_to_see_data_it_is_refused(url: str, queue: leaseq.WorkQueue) -> None:
    die(queue, leaseq.Item(b"secret", id="a"))
    with browser(url, allow=lambda _, action: action in {"read", "edit"}) as site:
        assert "action=edit" not in site.get("/item", queue="q", id="a")
        assert "You may not see data here" in site.get("/change", 403, **EDIT)
    with browser(url, allow=lambda _, action: action in {"read", "data"}) as site:
        assert "You may not requeue with edited data here" in site.get("/change", 403, **EDIT)
