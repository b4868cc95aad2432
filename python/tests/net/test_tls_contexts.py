"""TLS contexts: made once for the same settings, and anew when their files change."""

from __future__ import annotations

import contextlib
import hashlib
import os
import ssl
from typing import TYPE_CHECKING, Any

import pytest
import redis
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from leaseq.endpoint import endpoint
from leaseq.errors import BadArgumentError

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


@pytest.mark.parametrize("changed", ["ssl_ca_certs", "ssl_certfile", "ssl_keyfile"])
def test_a_file_that_changes_in_place_is_read(given: dict[str, Any], tmp_path: Path, changed: str) -> None:
    """A file that stays the same one may keep its length."""
    file = tmp_path / changed
    text = file.read_bytes()
    file.write_bytes(text + b"\n")
    before, written = context(given), file.stat()
    file.write_bytes(text + b" ")
    os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns + 1))
    assert (file.stat().st_ino, file.stat().st_size) == (written.st_ino, written.st_size)
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


def hashed_name(issuer: trustme.CA) -> str:
    """Return the name under which OpenSSL looks for a CA in a folder, as `openssl rehash` makes it."""
    subject = x509.load_pem_x509_certificate(issuer.cert_pem.bytes()).subject
    canonical = x509.Name([x509.NameAttribute(each.oid, str(each.value).lower()) for each in subject])
    digest = hashlib.sha1(canonical.public_bytes()[2:]).digest()  # noqa: S324 (its name, no signature)
    return f"{int.from_bytes(digest[:4], 'little'):08x}.0"


class Ends:
    """Both ends of connections over TLS: the settings of the client, and the context of the server, localhost."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.issuer, self.stranger = trustme.CA(), trustme.CA()
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.issuer.issue_cert("localhost").configure_cert(self.server)
        self.issuer.configure_trust(self.server)

    def trust(self, name: str, issuer: trustme.CA) -> dict[str, str]:
        """Settings that trust an issuer, by the setting of this name."""
        file = self._folder / hashed_name(issuer)
        issuer.cert_pem.write_to_path(file)
        text = issuer.cert_pem.bytes().decode()
        return {name: {"ssl_ca_data": text, "ssl_ca_path": str(self._folder)}.get(name, str(file))}

    def own(self, password: str = "") -> dict[str, str]:
        """Settings with a certificate of the client. Its key is encrypted if there is a password."""
        made = self.issuer.issue_cert("client")
        key, certificate = self._folder / "key", self._folder / "certificate"
        made.cert_chain_pems[0].write_to_path(certificate)
        plain = made.private_key_pem.bytes()
        if password:
            encryption = serialization.BestAvailableEncryption(password.encode())
            form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
            key.write_bytes(serialization.load_pem_private_key(plain, None).private_bytes(*form))
        else:
            key.write_bytes(plain)
        return {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}

    def connect(self, given: dict[str, Any], name: str = "localhost") -> str:
        """Return the protocol that both agree on. Raises ssl.SSLError."""
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = context(given).wrap_bio(back, there, server_hostname=name)
        server = self.server.wrap_bio(there, back, server_side=True)
        for _ in range(3):
            for end in (client, server):
                with contextlib.suppress(ssl.SSLWantReadError):
                    end.do_handshake()
        version: str = client.version()
        assert server.version() == version
        return version


@pytest.fixture
def ends(tmp_path: Path) -> Ends:
    return Ends(tmp_path)


@pytest.mark.parametrize("name", ["ssl_ca_certs", "ssl_ca_path", "ssl_ca_data"])
def test_an_issuer_is_trusted_that_any_setting_names(ends: Ends, name: str) -> None:
    """A file, a folder or the text itself; another issuer is not trusted for it."""
    with pytest.raises(ssl.SSLCertVerificationError):
        ends.connect(ends.trust(name, ends.stranger))
    ends.connect(ends.trust(name, ends.issuer))


def test_issuers_of_several_settings_are_all_trusted(ends: Ends) -> None:
    for names in (("ssl_ca_certs", "ssl_ca_data"), ("ssl_ca_data", "ssl_ca_certs")):
        mine, other = names
        ends.connect(ends.trust(mine, ends.issuer) | ends.trust(other, ends.stranger))


def test_a_certificate_of_the_client_is_sent(ends: Ends) -> None:
    trusted = ends.trust("ssl_ca_data", ends.issuer)
    ends.server.verify_mode = ssl.CERT_REQUIRED
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        ends.connect(trusted)
    ends.connect(trusted | ends.own())
    ends.connect(trusted | ends.own("secret") | {"ssl_password": "secret"})
    with pytest.raises(BadArgumentError, match="SSLError"):
        context(trusted | ends.own("secret") | {"ssl_password": "wrong"})


def test_the_name_of_the_server_and_its_certificate_are_checked_unless_a_setting_says_not(ends: Ends) -> None:
    trusted, stranger = (ends.trust("ssl_ca_data", each) for each in (ends.issuer, ends.stranger))
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        ends.connect(trusted, "elsewhere")
    ends.connect(trusted | {"ssl_check_hostname": False}, "elsewhere")
    for kind in ("required", "optional", ssl.CERT_REQUIRED):
        with pytest.raises(ssl.SSLCertVerificationError):
            ends.connect(stranger | {"ssl_cert_reqs": kind})
    for lax in ("none", None, ssl.CERT_NONE):
        ends.connect(stranger | {"ssl_cert_reqs": lax})


def test_versions_ciphers_and_flags_are_those_of_the_settings(ends: Ends) -> None:
    trusted = ends.trust("ssl_ca_data", ends.issuer)
    ends.server.maximum_version = ssl.TLSVersion.TLSv1_2
    ends.server.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    assert ends.connect(trusted) == "TLSv1.2"
    for refused in (
        {"ssl_min_version": ssl.TLSVersion.TLSv1_3},
        {"ssl_ciphers": "ECDHE-ECDSA-AES256-GCM-SHA384"},
        {"ssl_include_verify_flags": [ssl.VERIFY_CRL_CHECK_LEAF]},
    ):
        with pytest.raises(ssl.SSLError):
            ends.connect(trusted | refused)
    flag = ssl.VerifyFlags.VERIFY_X509_TRUSTED_FIRST
    assert context(trusted).verify_flags & flag
    assert not context(trusted | {"ssl_exclude_verify_flags": [flag]}).verify_flags & flag
