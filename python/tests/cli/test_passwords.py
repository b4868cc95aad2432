"""Passwords in URLs that a program was given."""

from __future__ import annotations

import pytest

from leaseq.cli.passwords import has_password, without_passwords

HIDDEN = {
    "redis://:secret@host:6379/0": "redis://:...@host:6379/0",
    "--url=rediss://shop:se@cr:et@host/0": "--url=rediss://shop:...@host/0",
    "redis://shop:top secret@host": "redis://shop:...@host",
    "redis+sentinel://u:secret@a:1,b:2/main?sentinel_password=other&db=1": (
        "redis+sentinel://u:...@a:1,b:2/main?sentinel_password=...&db=1"
    ),
    "unix://shop:secret@/run/redis.sock?db=1": "unix://shop:...@/run/redis.sock?db=1",
    "redis://host?password=secret&db=2": "redis://host?password=...&db=2",
    "rediss+cluster://host?ssl_password=secret": "rediss+cluster://host?ssl_password=...",
}


@pytest.mark.parametrize("given", HIDDEN)
def test_a_password_is_found_and_hidden(given: str) -> None:
    assert has_password(given)
    assert without_passwords(given) == HIDDEN[given]


@pytest.mark.parametrize(
    "given",
    [
        "redis://host:6379/0",
        "redis://shop@host/0?password_file=/run/secrets/redis",
        "redis://host:6379/0?client_name=a@b",
        "embedded:data",
        "me@example.org:22",
    ],
)
def test_without_a_password_nothing_is_hidden(given: str) -> None:
    assert not has_password(given)
    assert without_passwords(given) == given
