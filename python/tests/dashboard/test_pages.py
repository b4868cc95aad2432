"""Pages: what they show, in which order, and what they say if there is nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.dashboard_site import Browser, browser, everything
from support.servers import SpawnedServer, wait_until

import leaseq
from leaseq.dashboard import scan
from leaseq.dashboard.pages import schedules
from leaseq.jobs import App, ScheduleInfo
from leaseq.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def site(url: str) -> Iterator[Browser]:
    with browser(url, allow=everything) as made:
        yield made


def fill(url: str, name: str, ready: int, dead: int = 0, group: str | None = None) -> None:
    with leaseq.WorkQueue(name, url, group=group) as queue:
        queue.add_items(leaseq.Item(b"", id=f"{name}-{number}") for number in range(dead))
        queue.dead_letter_items(queue.lease_items(dead, 60) if dead else [], error="KeyError: 'x'")
        queue.add_items(leaseq.Item(b"", id=f"{name}+{number}") for number in range(ready))


def queues_on(page: str) -> list[str]:
    return re.findall(r'<td class="name"><a [^>]*>(?:<span class="muted">[^<]*</span>)?([^<]*)</a>', page)


def test_the_overview_is_sorted_and_filtered(url: str, site: Browser) -> None:
    fill(url, "a", 1, 2)
    fill(url, "b", 5)
    fill(url, "c", 3, 1, group="Shop")
    assert queues_on(site.get("/")) == ["a", "b", "c"]
    assert queues_on(site.get("/", sort="ready")) == ["b", "c", "a"]
    assert queues_on(site.get("/", sort="dead")) == ["a", "c", "b"]
    assert queues_on(site.get("/", show="dead")) == ["a", "c"]
    for text in ("SHOP:", "shop:", "Shop"):
        assert queues_on(site.get("/", text=text)) == ["c"]
    assert "None of the 3 queues fits" in site.get("/", text="zzz")
    assert queues_on(site.get("/", sort="nonsense", page="x")) == ["a", "b", "c"]


def test_the_overview_shows_what_is_paused_or_overdue(url: str, site: Browser) -> None:
    fill(url, "a", 2)
    with leaseq.WorkQueue("a", url) as queue:
        queue.lease(0.001)
        queue.pause()
        wait_until(lambda: queue.stats().overdue)
    page = site.get("/")
    assert "paused</span>" in page
    assert "1 overdue</span>" in page
    assert queues_on(site.get("/", show="overdue")) == ["a"]
    assert queues_on(site.get("/", show="paused")) == ["a"]


def test_the_overview_has_pages(url: str, site: Browser) -> None:
    for number in range(60):
        fill(url, f"q{number:02}", 1)
    assert queues_on(site.get("/")) == [f"q{number:02}" for number in range(50)]
    assert queues_on(site.get("/", page=2)) == [f"q{number:02}" for number in range(50, 60)]
    assert queues_on(site.get("/", page=99)) == [f"q{number:02}" for number in range(50, 60)]


def test_an_empty_server_says_what_to_do(site: Browser) -> None:
    assert "leaseq add orders" in site.get("/")
    assert "leaseq worker" in site.get("/workers")
    assert "@app.cron" in site.get("/schedules")
    assert "Nothing is ready" in site.get("/queue", queue="new")
    assert "Nothing is dead" in site.get("/dead", queue="new")


def test_items_are_listed_by_state_and_page(url: str, site: Browser) -> None:
    fill(url, "q", 70, 3)
    page = site.get("/queue", queue="q")
    assert page.count('<tr><td class="id">') == 50
    assert site.get("/queue", queue="q", page=2).count('<tr><td class="id">') == 20
    dead = site.get("/queue", queue="q", state="dead")
    assert dead.index("q-0") < dead.index("q-2")
    last = site.get("/queue", queue="q", state="dead", order="last")
    assert last.index("q-2") < last.index("q-0")
    assert "KeyError: &#39;x&#39;" in dead


def test_a_job_has_its_function_error_traceback_and_chain(url: str, site: Browser) -> None:
    with App(url) as app:

        @app.job(name="shop.pack", retries=0)
        def pack(order: str) -> str:
            raise ValueError(f"no books for {order}")

        @app.job(name="shop.send")
        def send(packed: str) -> None: ...

        app.chain(pack.with_options(id="order-17").call("o17")).then(send.partial()).enqueue()
        import asyncio

        from leaseq.jobs import aio

        asyncio.run(aio.App.of_program(app.program).run_worker(burst=True))
    page = site.get("/item", queue="default", group="jobs", id="order-17")
    for expected in ("shop.pack", "failed", "ValueError: no books for o17", "Traceback", "shop.send", "o17"):
        assert expected in page
    assert "action=revive" in page


def test_data_are_text_json_or_hex_and_headers_are_there(url: str, site: Browser) -> None:
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_item(leaseq.Item(b'{"books":2}', id="a", headers={"trace": "t1"}, content_type="text/x"))
        queue.add_item(leaseq.Item(b"\xff\x00", id="b"))
    page = site.get("/item", queue="q", id="a")
    assert "{\n  &#34;books&#34;: 2\n}" in page
    assert "trace" in page
    assert "text/x" in page
    assert "{&#34;books&#34;:2}" in site.get("/item", queue="q", id="a", **{"as": "text"})
    assert "7b 22 62" in site.get("/item", queue="q", id="a", **{"as": "hex"})
    assert "00000000  ff 00" in site.get("/item", queue="q", id="b")


def test_data_are_hidden_unless_allowed(url: str) -> None:
    with leaseq.WorkQueue("q", url) as queue, App(url) as app:
        queue.add_item(leaseq.Item(b"secret", id="a", headers={"x": "secret"}))
        app.function("shop.pack").with_options(id="j").enqueue("secret")
    with browser(url) as reader:
        for page in (
            reader.get("/item", queue="q", id="a"),
            reader.get("/item", queue="default", group="jobs", id="j"),
        ):
            assert "hidden from you" in page
            assert "secret" not in page


def test_results_are_shown(url: str, site: Browser) -> None:
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_item(leaseq.Item(b"", id="a"), keep=60)
        item = queue.lease(60)
        assert item is not None
        queue.complete(item, result=b'{"total": 3}')
    page = site.get("/item", queue="q", id="a")
    assert "Result" in page
    assert "&#34;total&#34;: 3" in page
    assert "outcome kept" in site.get("/search", id="a")
    assert site.get("/queue", queue="q", state="kept").count('<tr><td class="id">') == 1


def test_dead_letters_are_grouped_by_the_first_line_of_their_errors(url: str, site: Browser) -> None:
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_items(leaseq.Item(b"", id=f"i{number}") for number in range(7))
        items = queue.lease_items(7, 60)
        queue.dead_letter_items(items[:4], error="ValueError: no books\nTraceback 1")
        queue.dead_letter_items(items[4:6], error="KeyError: x")
        queue.dead_letter_items(items[6:])
    page = site.get("/dead", queue="q")
    assert re.findall(r'<td class="n">(\d+)</td>', page) == ["4", "2", "1"]
    assert "No error" in page
    group = site.get("/dead", queue="q", error="KeyError: x")
    assert re.findall(r"<bdi>(i\d)</bdi>", group) == ["i5", "i4"]
    assert "Looked at all 7 dead letters" in page
    found = site.get("/dead", queue="q", text="NO BOOKS")
    assert re.findall(r'<td class="n">(\d+)</td>', found) == ["4"]
    assert "action=purge" not in found  # a group that is filtered is not all of it


def test_an_id_is_found_in_every_queue(url: str, site: Browser) -> None:
    for name in ("a", "b", "c"):
        fill(url, name, 1)
    with leaseq.WorkQueue("b", url) as queue, leaseq.WorkQueue("c", url, group="shop") as other:
        queue.add_item(leaseq.Item(b"", id="order-17"))
        other.add_item(leaseq.Item(b"", id="order-17"), delay=60)
    page = site.get("/search", id="order-17")
    assert "Looked in 4 of 4 queues" in page
    assert re.findall(r"<td>(ready|delayed)</td>", page) == ["ready", "delayed"]
    assert re.findall(r"<td>(ready|delayed)</td>", site.get("/search", id="order-17", group="shop")) == [
        "delayed"
    ]
    assert "No queue has this id" in site.get("/search", id="order-18")


@pytest.mark.parametrize("item_id", ["x" * 257, "é" * 129, "a\0"])
def test_a_search_says_what_an_id_is(url: str, site: Browser, item_id: str) -> None:
    fill(url, "a", 1)
    page = site.get("/search", 400, id=item_id)
    assert "an id is 1..256 bytes of UTF-8 without NUL" in page
    assert "could not be read" not in page


def test_an_item_has_its_history(url: str, site: Browser) -> None:
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_item(leaseq.Item(b"", id="a"), expires_in=3600, keep=60)
        page = site.get("/item", queue="q", id="a")
        assert events(page) == [
            "added",
            "ready since, attempts so far: 0",
            "expires, unless it is leased before",
        ]
        item = queue.lease(60)
        assert item is not None
        queue.dead_letter(item, error="x")
        page = site.get("/item", queue="q", id="a", **{"as": "hex"})
        wait_until(lambda: "died in attempt 1" in site.get("/item", queue="q", id="a"))
        queue.revive("a")
        again = queue.lease(60)
        assert again is not None
        queue.complete(again, result=b"1")
        wait_until(lambda: "completed in" in site.get("/item", queue="q", id="a"))
    assert events(site.get("/item", queue="q", id="a")) == ["added", "completed in attempt 1"]


def events(page: str) -> list[str]:
    return re.findall(r"</time>: ([^<]*)</li>", page)


def test_a_scan_finds_jobs_by_function_and_says_how_far_it_looked(url: str, site: Browser) -> None:
    fill(url, "items", 3)
    with App(url) as app:
        for number in range(3):
            app.function("shop.pack").with_options(id=f"p{number}").enqueue(number)
        app.function("shop.send").with_options(id="s", delay=60).enqueue("x" * 70_000)
    page = site.get("/search", id="PACK", **{"for": "function"})
    assert found(page) == ["p0", "p1", "p2"]
    assert "Looked at 7 of 7 jobs that wait, run or failed, in 2 of 2 queues" in page
    assert "1 have data that are too long" in page
    nothing = site.get("/search", id="pack", queue="items", **{"for": "function"})
    assert "No job that was looked at" in nothing
    assert "Looked at 3 of 3" in nothing


def test_a_scan_by_function_reads_both_formats(url: str, site: Browser) -> None:
    """LQ-JOB-17: other data are no job, in either format."""
    for form in ("json", "msgpack"):
        with App(url, format=form) as app:
            app.function("shop.pack").with_options(id=form).enqueue(1, of="x")
            app.function("shop.send").with_options(id=f"other-{form}").enqueue(1)
    with leaseq.WorkQueue("items", url) as queue:
        others = [
            b"",
            b"\xc1",
            b"pack",
            b"\x82\xa8function\xa4pack",
            b"\xa4pack",
            b"\xff" * 40,
            b"{" * 5000,
            b"\x91" * 5000,
        ]
        queue.add_items([leaseq.Item(data, id=f"no-job-{n}") for n, data in enumerate(others)])
    page = site.get("/search", id="PACK", **{"for": "function"})
    assert found(page) == ["json", "msgpack"]
    assert "Looked at 12 of 12 jobs" in page


def found(page: str) -> list[str]:
    return sorted(re.findall(r'<td class="id"><a [^>]*><bdi>([^<]*)</bdi>', page))


def test_a_scan_finds_text_in_dead_letters_of_all_queues(url: str, site: Browser) -> None:
    for name in ("a", "b"):
        fill(url, name, 1, 2)
    with leaseq.WorkQueue("c", url) as queue:
        queue.add_item(leaseq.Item(b"a Secret book", id="c-0"))
        queue.dead_letter_items(queue.lease_items(1, 60), error="ValueError: y")
    assert found(site.get("/search", id="keyerror", **{"for": "text"})) == ["a-0", "a-1", "b-0", "b-1"]
    page = site.get("/search", id="sECRET", **{"for": "text"})
    assert found(page) == ["c-0"]
    assert "Looked at 5 of 5 dead letters, in 3 of 3 queues" in page
    assert "There may be more" not in page
    with browser(url) as reader:
        page = reader.get("/search", id="secret", **{"for": "text"})
        assert "data are hidden from you" in page
        assert "c-0" not in page


def test_a_scan_is_bounded(url: str, site: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_ITEMS", 3)
    for name in ("a", "b"):
        fill(url, name, 0, 5)
    page = site.get("/search", id="-0", **{"for": "text"})
    assert "Looked at 3 of 10 dead letters, in 1 of 2 queues" in page
    assert "There may be more" in page


def test_the_cleaner_page_shows_what_waits(url: str, site: Browser) -> None:
    assert "Nothing waits" in site.get("/cleaner")
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_items(leaseq.Item(b"") for _ in range(2))
        queue.lease_items(2, 0.001)
        wait_until(lambda: queue.stats().overdue)
    with browser(url) as fresh:
        page = fresh.get("/cleaner")
    assert '<span class="bad">2</span>' in page
    assert "In 1 of 1 queues" in page


def test_the_next_slots_of_a_rule() -> None:
    def schedule(rule: str, next_slot: float) -> ScheduleInfo:
        return ScheduleInfo("s", "q", rule, "last", "f", False, 0.0, next_slot)

    slots = schedules._slots_after
    assert slots(schedule("every 60 s", 600.0)) == [660.0, 720.0, 780.0]
    assert slots(schedule("every 1.5 s", 3.0)) == [4.5, 6.0, 7.5]
    assert slots(schedule("0 5 * * * UTC", 18000.0)) == [104400.0, 190800.0, 277200.0]
    assert slots(schedule("@hourly Europe/Berlin", 3600.0)) == [7200.0, 10800.0, 14400.0]
    for unknown in ("", "every 1.23457e+06 s", "every 123456 s", "0 5 * * * nowhere", "* * UTC", "every s"):
        assert slots(schedule(unknown, 600.0)) == []


@pytest.mark.slow
def test_workers_are_listed_with_what_they_hold(url: str, site: Browser) -> None:
    def handle(_item: leaseq.LeasedItem) -> None:
        wait_until(lambda: "order-1" in site.get("/workers"))
        worker.stop()

    with leaseq.WorkQueue("orders", url) as queue:
        queue.add_item(leaseq.Item(b"", id="order-1"))
        worker = Worker(queue, handle)
        worker.run()
    wait_until(lambda: "No worker is alive" in site.get("/workers"))


def test_the_doctor_reports(url: str, site: Browser) -> None:
    fill(url, "q", 1)
    page = site.get("/doctor")
    assert "eviction" in page
    assert "queue q" in page


@pytest.mark.slow
def test_rates_come_from_two_reads(url: str, site: Browser) -> None:
    fill(url, "q", 1)
    assert re.findall(r"<b>([^<]*)</b>added per min", site.get("/queue", queue="q")) == ["0"]
    fill(url, "q", 60, 1)
    wait_until(lambda: re.findall(r"<b>([1-9][^<]*)</b>added per min", site.get("/queue", queue="q")))


@pytest.mark.slow
def test_a_server_that_is_away_is_named_and_the_last_numbers_stay(
    own_server: Callable[..., SpawnedServer],
) -> None:
    server = own_server()
    fill(server.url, "q", 3)
    with browser(server.url) as site:
        assert queues_on(site.get("/")) == ["q"]
        server.kill()
        wait_until(lambda: "The server does not answer" in site.get("/"))
        assert queues_on(site.get("/")) == ["q"]
        assert "The server does not answer" in site.get("/item", 503, queue="q", id="a")
