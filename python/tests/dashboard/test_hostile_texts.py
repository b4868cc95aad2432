"""Texts from outside are shown harmlessly: markup, terminal codes, long lines, other bytes than UTF-8, directions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.dashboard_site import Browser, browser, everything

import leaseq
from leaseq.dashboard import visible_text
from leaseq.jobs import App

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKUP = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
CODES = "\x1b]0;owned\x07\x1b[2J\x9b2J\r\b\x7f"
TURNED = "photo\u202egnp.exe\u2066\u200f\ufeff"
HOSTILE = {
    "markup": MARKUP,
    "codes": CODES,
    "turned": TURNED,
    "template": "{{ 7 * 7 }}{% raw %}${7*7}",
    "address": "javascript:alert(1)//../../?id=%00&queue=x#y",
    "lines": "a\nb\r\nc\u2028d\x85e",
}
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


@pytest.fixture
def site(url: str) -> Iterator[Browser]:
    with browser(url, allow=everything, user=lambda _: MARKUP + CODES) as made:
        yield made


def check(page: str) -> None:
    assert not FORBIDDEN.search(page), FORBIDDEN.search(page)
    assert "<script>" not in page
    assert "<img src=x" not in page
    assert "49" not in re.findall(r"<bdi>(.*?)</bdi>", page)
    assert "javascript:alert" not in re.findall(r'href="(.{0,20})', page)


@pytest.mark.parametrize("kind", HOSTILE)
def test_ids_errors_data_and_headers(url: str, site: Browser, kind: str) -> None:
    text = HOSTILE[kind]
    with leaseq.WorkQueue("q", url) as queue:
        item_id = text.encode()[:200].decode(errors="ignore")
        queue.add_item(leaseq.Item(text.encode(), id=item_id, headers={"x": text}, content_type=text))
        item = queue.lease(60)
        assert item is not None
        queue.dead_letter(item, error=f"{text}\n{text}")
    check(site.get("/queue", queue="q", state="dead"))
    check(site.get("/search", id=item_id))
    listed = site.get("/dead", queue="q")
    check(listed)
    for form in ("text", "json", "hex"):
        page = site.get("/item", **{"queue": "q", "id": item_id, "as": form})
        check(page)
        assert "Last error" in page
    for action in ("revive", "purge", "edit"):
        check(site.get("/change", action=action, queue="q", id=item_id))
    check(site.get("/search", id=text[:3], **{"for": "text"}))
    error = text.partition("\n")[0].strip()
    check(site.get("/dead", queue="q", error=error))
    site.change(action="purge", queue="q", error=error)
    for page in (site.get("/"), site.get("/dead", queue="q"), site.get("/item", queue="q", id=item_id)):
        check(page)
        assert "planned by" in page
        (plan,) = set(re.findall(r"plan=([0-9a-f-]+)", page))
    check(site.get("/change", action="undo", queue="q", plan=plan))
    assert site.change(action="revive", queue="q", id=item_id) == "The item is ready again."


def test_every_link_of_a_hostile_id_leads_to_its_item(url: str, site: Browser) -> None:
    import html

    with leaseq.WorkQueue("q", url) as queue:
        queue.add_items(leaseq.Item(b"", id=text.encode()[:200].decode()) for text in HOSTILE.values())
    page = site.get("/queue", queue="q")
    links = {html.unescape(link) for link in re.findall(r'href="(/item[^"]*)"', page)}
    assert len(links) == len(HOSTILE)
    assert {site.client.get(link).status_code for link in links} == {200}


@pytest.mark.parametrize("kind", HOSTILE)
def test_arguments_of_the_address(site: Browser, kind: str) -> None:
    text = HOSTILE[kind]
    check(site.get("/", text=text, sort=text, show=text, page=text))
    check(site.get("/queue", 400, queue=text))
    check(site.get("/item", 404, queue="q", id=text))
    check(site.get("/dead", queue="q", text=text, error=text))
    check(site.get("/workers", text=text))
    check(site.get("/search", id=text, group=text))
    check(site.get("/search", id=text, queue=text, **{"for": "function"}))
    check(site.get("/search", id=text, **{"for": "text"}))
    check(site.get("/cleaner", page=text))
    check(site.get("/change", 400, action=text, queue="q"))
    check(site.get("/change", action="undo", queue="q", plan=text))
    check(site.get("/change", action="quiet_worker", worker=text))
    check(site.get("/change", action="trigger", queue="q", schedule=text))


def test_a_job_with_hostile_parts(url: str, site: Browser) -> None:
    with App(url) as app:
        call = app.function("shop.pack").with_options(id="j", description=MARKUP + CODES + TURNED)
        call.enqueue(MARKUP, CODES, x=TURNED)
    check(site.get("/item", queue="default", group="jobs", id="j"))


def test_long_lines_are_cut(url: str, site: Browser) -> None:
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_item(leaseq.Item(b"x" * (1 << 20), id="long"))
        queue.add_item(leaseq.Item(b"[" * (1 << 20), id="deep"))
        queue.add_item(leaseq.Item(b"[" * 60_000, id="nested"))
        queue.add_item(leaseq.Item(bytes(range(256)) * 4096, id="bytes"))
        queue.configure(max_data=1 << 22)
        queue.add_item(leaseq.Item(b"x" * ((1 << 20) + 1), id="longer"))
    for item_id in ("long", "deep", "nested", "bytes"):
        for form in ("text", "json", "hex"):
            page = site.get("/item", **{"queue": "q", "id": item_id, "as": form})
            assert len(page) < 600_000
            check(page)
    assert "too long to be shown here" in site.get("/item", queue="q", id="longer")


@given(st.binary(max_size=300), st.sampled_from(["text", "json", "hex"]))
def test_no_data_has_a_control_character_left(content: bytes, form: str) -> None:
    shown = visible_text.data(content, form)
    assert all(each.isprintable() or each == "\n" for each in shown)


@given(st.text(max_size=400))
def test_no_text_has_a_control_character_left(text: str) -> None:
    assert visible_text.line(text).isprintable()
    assert all(line.isprintable() for line in visible_text.block(text).split("\n"))
