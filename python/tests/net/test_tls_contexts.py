"""TLS contexts: made once for the same settings, and anew when their files change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import redis
import trustme

from leaseq.endpoint import endpoint

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """Settings with a certificate of the client, in files."""
    write(tmp_path)
    return {name: str(tmp_path / name) for name in ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")}


def write(folder: Path) -> None:
    """Write a certificate, its key and its issuer, over those that are there."""
    issuer = trustme.CA()
    issuer.cert_pem.write_to_path(folder / "ssl_ca_certs")
    own = issuer.issue_cert("client")
    own.cert_chain_pems[0].write_to_path(folder / "ssl_certfile")
    own.private_key_pem.write_to_path(folder / "ssl_keyfile")


def context(given: dict[str, Any]) -> Any:
    """Return what a new connection uses."""
    return endpoint(given, redis.SSLConnection).tls()


def test_a_context_is_made_once(given: dict[str, Any]) -> None:
    """Each took 20 ms, and 600 tasks of one event loop could not connect within their time."""
    assert context(given) is context(dict(given))
    assert context(given) is not context(given | {"ssl_check_hostname": False})


def test_a_certificate_that_is_replaced_is_read(given: dict[str, Any], tmp_path: Path) -> None:
    before = context(given)
    write(tmp_path)
    after = context(given)
    assert after is not before
    assert after.get_ca_certs() != before.get_ca_certs()
    assert context(given) is after


@pytest.mark.parametrize("changed", ["ssl_ca_certs", "ssl_certfile", "ssl_keyfile"])
def test_each_file_that_changes_is_read(given: dict[str, Any], tmp_path: Path, changed: str) -> None:
    """One of them alone: a second issuer is added, for example."""
    before = context(given)
    file = tmp_path / changed
    file.write_bytes(file.read_bytes() + b"\n")
    assert context(given) is not before


def test_a_link_that_leads_elsewhere(given: dict[str, Any], tmp_path: Path) -> None:
    """As secrets are mounted in a container."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        write(tmp_path / name)
    (tmp_path / "link").symlink_to("old")
    linked = {name: str(tmp_path / "link" / name) for name in given}
    before = context(linked)
    (tmp_path / "next").symlink_to("new")
    (tmp_path / "next").replace(tmp_path / "link")
    assert context(linked) is not before


def test_contexts_of_many_settings_are_not_kept_for_ever(given: dict[str, Any]) -> None:
    first = context(given)
    for number in range(40):
        context(given | {"ssl_ciphers": "DEFAULT", "ssl_password": str(number)})
    assert context(given) is not first
