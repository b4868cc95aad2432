"""Which requests are answered: hosts, origins, passwords, proxies; and what every response has."""

from __future__ import annotations

import base64
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Mount
from support import servers
from support.dashboard_site import Browser, browser, everything, visiting

import leaseq
from leaseq import dashboard
from leaseq.dashboard.application import MAX_FORM_BYTES, Dashboard
from leaseq.dashboard.authentication import PasswordLogin, ProxyLogin
from leaseq.dashboard.passwords import PasswordHash, Passwords, line_of
from leaseq.dashboard.request_guard import POLICY
from leaseq.errors import BadArgumentError, NoServerError

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import HTTPConnection

PAUSE = {"action": "pause", "queue": "q"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "same-origin", "origin": "http://evil.example"}, 200),
        ({"sec-fetch-site": "cross-site", "origin": "http://localhost"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"origin": "http://localhost"}, 200),
        ({"origin": "https://LOCALHOST"}, 200),
        ({"origin": "http://localhost:81"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[::1"}, 403),
        ({}, 403),
    ],
    ids=str,
)
def test_a_change_comes_from_a_page_of_the_dashboard(url: str, headers: dict[str, str], status: int) -> None:
    with browser(url, allow=everything) as site, leaseq.WorkQueue("q", url) as queue:
        reply = site.client.post(site.address("/change", PAUSE), headers=headers)
        assert reply.status_code == status
        assert queue.stats().paused is (status == 200)


def test_get_changes_nothing(url: str) -> None:
    with browser(url, allow=everything) as site, leaseq.WorkQueue("q", url) as queue:
        site.get("/change", **PAUSE)
        assert not queue.stats().paused
        assert (
            site.client.put(
                site.address("/change", PAUSE), headers={"origin": "http://localhost"}
            ).status_code
            == 405
        )


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "", "[", "127.0.0.1.evil.example"]
)
def test_other_hosts_are_refused(url: str, host: str) -> None:
    app = Dashboard(url, hosts=["localhost", "127.0.0.1", "::1"])
    with visiting(app) as site:
        assert site.client.get("/", headers={"host": host}).status_code == 400
        for right in ("localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080"):
            assert site.client.get("/", headers={"host": right}).status_code == 200


def test_every_response_has_the_policy(url: str) -> None:
    with browser(url) as site:
        for path in ("/", "/nothing", "/queue?queue=a/b", "/static/dashboard.js", "/static/nothing"):
            reply = site.client.get(path)
            assert reply.headers["content-security-policy"] == POLICY
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert "set-cookie" not in reply.headers
        assert "unsafe" not in POLICY
        assert site.client.get("/").headers["cache-control"] == "no-store"
        assert site.client.post("/change").headers["content-security-policy"] == POLICY


def test_pages_have_nothing_inline(url: str) -> None:
    with browser(url, allow=everything) as site:
        for path in ("/", "/queue?queue=q", "/workers", "/change?action=pause&queue=q"):
            page = site.client.get(path).text
            assert "<style" not in page
            assert " style=" not in page
            assert " onclick" not in page
            assert page.count("<script") == page.count("<script src=")
            assert "//" not in page.replace("<!doctype", "").split("<main", 1)[0].replace("http-equiv", "")


def test_a_form_that_is_too_long_is_refused(url: str) -> None:
    with browser(url, allow=everything) as site:
        reply = site.client.post(
            site.address("/change", PAUSE),
            content=b"x" * (MAX_FORM_BYTES + 1),
            headers={"sec-fetch-site": "same-origin"},
        )
        assert reply.status_code == 413


def test_without_read_nothing_is_shown(url: str) -> None:
    with browser(url, allow=lambda _request, _action: False) as site:
        assert "You may not see this dashboard" in site.get("/", 403)


@pytest.mark.parametrize("prefix", ["/queues", "/deep/er"])
def test_it_is_mounted_below_any_path(url: str, prefix: str) -> None:
    with leaseq.WorkQueue("q", url) as queue:
        queue.add_item(leaseq.Item(b"", id="a"))
    mounted = dashboard.asgi(url, allow=everything)
    with visiting(Starlette(routes=[Mount(prefix, mounted)]), prefix) as site:
        page = site.get("/")
        links = set(page.split('href="')[1:]) | set(page.split('src="')[1:])
        assert all(link.startswith((f"{prefix}/", "#")) for link in links)
        assert site.client.get(f"{prefix}/static/htmx.min.js").status_code == 200
        assert site.client.get(prefix).headers["location"].endswith(f"{prefix}/")
        assert site.change(**PAUSE) == "The queue is paused."
    mounted.close()


def test_fastapi_mounts_it(url: str) -> None:
    from fastapi import FastAPI

    app = FastAPI()
    mounted = dashboard.asgi(url)
    app.mount("/queues", mounted)
    with visiting(app, "/queues") as site:
        assert "leaseq add orders" in site.get("/")
    mounted.close()


class _HeaderLogin(AuthenticationBackend):
    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser]:
        return AuthCredentials(["authenticated"]), SimpleUser(conn.headers["x-user"])


def test_the_user_of_the_application_is_named(url: str) -> None:
    mounted = dashboard.asgi(url)
    app = Starlette(
        routes=[Mount("/queues", mounted)],
        middleware=[Middleware(AuthenticationMiddleware, backend=_HeaderLogin())],
    )
    with visiting(app, "/queues") as site:
        site.client.headers["x-user"] = "<b>ada</b>"
        assert "you are <bdi>&lt;b&gt;ada&lt;/b&gt;</bdi>" in site.get("/")
    mounted.close()


def test_no_server_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    with pytest.raises(NoServerError, match=r"leaseq\.dashboard\.asgi"):
        dashboard.asgi()


def login(name: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text(line_of("ada", "päss:word") + "\n")
    return path


def with_passwords(url: str, users: Path) -> Dashboard:
    passwords = Passwords(users)
    return Dashboard(url, login=lambda app: PasswordLogin(app, passwords))


def test_a_password_is_asked_for(url: str, users: Path) -> None:
    with visiting(with_passwords(url, users)) as site:
        assert "you are <bdi>ada</bdi>" in site.client.get("/", headers=login("ada", "päss:word")).text
        for headers in (
            {},
            login("ada", "word"),
            login("eve", "päss:word"),
            login("", ""),
            {"authorization": "Basic !"},
            {"authorization": "Bearer x"},
            {"authorization": "Basic " + base64.b64encode(b"\xff").decode()},
        ):
            reply = site.client.get("/", headers=headers)
            assert (reply.status_code, "Basic" in reply.headers["www-authenticate"]) == (401, True)
            assert site.client.get("/static/dashboard.js", headers=headers).status_code == 401


def test_a_password_is_checked_slowly_once(users: Path) -> None:
    passwords = Passwords(users)

    def secs(password: str) -> float:
        start = time.perf_counter()
        passwords.accept("ada", password)
        return time.perf_counter() - start

    first, again, wrong = secs("päss:word"), secs("päss:word"), secs("x")
    assert first > 0.02 < wrong
    assert again < 0.01


def test_a_password_that_is_changed_while_it_is_checked_is_not_known(
    users: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old one was entered among those that are right in the new file."""
    passwords = Passwords(users)
    other = threading.Thread(target=passwords.accept, args=("eve", "x"))

    def fits_later(found: PasswordHash, password: str) -> bool:
        if other.ident is None:
            users.write_text(line_of("eve", "x") + "\n")
            os.utime(users, ns=(1, 1))
            other.start()
            servers.wait_until(lambda: "eve" in passwords._users)
        return fits(found, password)

    fits = PasswordHash.fits
    monkeypatch.setattr(PasswordHash, "fits", fits_later)
    assert passwords.accept("ada", "päss:word")
    other.join()
    assert not passwords.accept("ada", "päss:word")


def test_a_user_who_is_removed_from_the_file_is_out_at_once(users: Path) -> None:
    passwords = Passwords(users)
    assert passwords.accept("ada", "päss:word")
    users.write_text(line_of("eve", "x") + "\n")
    os.utime(users, ns=(1, 1))
    assert not passwords.accept("ada", "päss:word")
    assert passwords.accept("eve", "x")


def test_the_file_has_no_password(users: Path) -> None:
    assert "word" not in users.read_text()
    assert line_of("ada", "x") != line_of("ada", "x")


@pytest.mark.parametrize(
    "line",
    [
        "ada",
        "ada:secret",
        "ada:md5:1:a:b",
        "ada:scrypt:x:a:b",
        "ada:scrypt:40:YQ==:YQ==",
        "a b:scrypt:14:YQ==:YQ==",
    ],
)
def test_a_line_that_is_no_user_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "users"
    path.write_text(f"{line_of('ada', 'x')}\n{line}\n")
    with pytest.raises(BadArgumentError, match="line 2 of the file of users"):
        Passwords(path)


def test_a_proxy_names_the_user(url: str) -> None:
    import ipaddress

    def proxied(network: str) -> Dashboard:
        return Dashboard(url, login=lambda app: ProxyLogin(app, [ipaddress.ip_network(network)]))

    with visiting(_from(proxied("10.0.0.0/8"), "10.1.2.3")) as site:
        named = site.client.get("/", headers={"x-forwarded-user": "ada"})
        assert "you are <bdi>ada</bdi>" in named.text
        assert site.client.get("/").status_code == 401
    with visiting(_from(proxied("10.0.0.0/8"), "192.168.0.1")) as site:
        assert site.client.get("/", headers={"x-forwarded-user": "ada"}).status_code == 403


def _from(app: Dashboard, address: str) -> Starlette:
    """Let requests come from an address."""

    async def moved(scope: dict[str, object], receive: object, send: object) -> None:
        await app({**scope, "client": (address, 1)}, receive, send)  # type: ignore[arg-type]

    return moved  # type: ignore[return-value]


def visit_all(site: Browser) -> None:
    for path in (
        "/",
        "/queue?queue=q",
        "/item?queue=q&id=a",
        "/dead?queue=q",
        "/workers",
        "/schedules",
        "/search?id=a",
    ):
        reply = site.client.get(path)
        assert reply.status_code == 200, (path, reply.text)


def test_the_rights_of_an_operator_are_enough(url: str) -> None:
    import redis

    from leaseq import access_rules

    with leaseq.WorkQueue("q", url) as queue, redis.Redis.from_url(url) as admin:
        queue.add_item(leaseq.Item(b"", id="a"))
        admin.execute_command("ACL", "SETUSER", "op", *access_rules.rules("operator", "secret"))
        try:
            with browser(url.replace("://", "://op:secret@"), allow=everything) as site:
                visit_all(site)
                site.get("/doctor")
                assert site.change(**PAUSE) == "The queue is paused."
        finally:
            admin.execute_command("ACL", "DELUSER", "op")
