"""Codecs of an App: what is stored is compressed or encrypted, and what functions get and return is not."""

from __future__ import annotations

import ast
import os
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.fernet import Fernet
from support.job_app import JobAppFlavour

from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs import App, BadEnvelopeError, JobFailed, SerializationError
from leaseq.jobs.codecs import MAX_DECODED_BYTES, Codec, Encrypted, Zlib

if TYPE_CHECKING:
    import redis

    from leaseq.jobs.serializer import Format

KEY, OTHER_KEY = Fernet.generate_key(), Fernet.generate_key()
SECRET = "rosebud"  # noqa: S105 (what must not be stored)
LONG = "rosebud " * 5000


@dataclass
class Order:
    note: str
    number: int


def note(order: Order, more: str = "") -> Order:
    return Order(order.note + more, order.number + 1)


def failing(text: str) -> None:
    raise ValueError(len(text))


def flavour_of(url: str, codec: Any, *, asynchronous: bool = False, **options: Any) -> JobAppFlavour:
    return JobAppFlavour(App(url, codec=codec, **options), asynchronous=asynchronous)


def stored(redis_client: redis.Redis) -> bytes:
    """All that the server has."""
    return b"".join(redis_client.dump(key) or b"" for key in redis_client.scan_iter())


@pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "asyncio"])
@pytest.mark.parametrize("form", ["json", "msgpack"])
@pytest.mark.parametrize("codec", [Encrypted(KEY), [Zlib(), Encrypted(KEY)]], ids=["one", "two"])
def test_what_is_stored_cannot_be_read(
    url: str, redis_client: redis.Redis, codec: Any, form: Format, *, asynchronous: bool
) -> None:
    with flavour_of(url, codec, asynchronous=asynchronous, format=form) as flavour:
        job = flavour.app.job(name="note", fork=not asynchronous)(note)
        first = job.call(Order(SECRET, 1), more="!")
        chain: Any = flavour.app.chain(first).then(job.partial(more=SECRET))
        handle = flavour(chain, "enqueue")
        assert SECRET.encode() not in stored(redis_client)
        assert flavour.burst() == 2
        assert SECRET.encode() not in stored(redis_client)
        assert flavour(handle, "result") == Order(SECRET + "!" + SECRET, 3)
        info = flavour(handle.stages[0], "info")
        assert info.args == ({"note": SECRET, "number": 1},)
        assert info.kwargs == {"more": "!"}


def test_long_data_is_compressed_and_short_data_is_not(url: str, redis_client: redis.Redis) -> None:
    with flavour_of(url, Zlib()) as flavour:
        job = flavour.app.job(name="note")(note)
        handles = [flavour(job, "enqueue", Order(text, 1)) for text in (SECRET, LONG)]
        data = redis_client.hget("leaseq:{jobs}:default:items", handles[1].id)
        assert data is not None
        assert len(data) < 1000 < len(LONG)
        assert flavour.burst() == 2
        assert [flavour(handle, "result").note for handle in handles] == [SECRET, LONG]
    assert Zlib().encode(b"short") == b"\0short"
    assert Zlib(least=0).decode(Zlib(least=0).encode(b"")) == b""


def test_a_format_still_decides_what_arrives_as_it_is(url: str) -> None:
    with flavour_of(url, Zlib()) as flavour:
        with pytest.raises(SerializationError, match="would be list, not tuple"):
            flavour(flavour.app, "enqueue", "f", (1, 2))
        job = flavour.app.job(name="f", retries=0)(lambda: (1, 2))
        handle = flavour(job, "enqueue")
        flavour.burst()
        with pytest.raises(JobFailed, match="would be list, not tuple"):
            flavour(handle, "result")


def test_a_serializer_goes_before_the_codecs(url: str) -> None:
    class Reversed:
        name = "reversed"

        def dumps(self, value: Any) -> bytes:
            return repr(value).encode()[::-1]

        def loads(self, data: bytes) -> Any:
            return ast.literal_eval(data[::-1].decode())

    with flavour_of(url, Zlib(least=0), serializer=Reversed()) as flavour:
        handle = flavour(flavour.app.job(name="f")(lambda pair: pair), "enqueue", (1, 2))
        flavour.burst()
        assert flavour(handle, "result") == (1, 2)


def test_a_key_that_changes(url: str) -> None:
    """Programs with both keys read what either key has written."""
    with flavour_of(url, Encrypted(KEY)) as old, flavour_of(url, Encrypted(OTHER_KEY, KEY)) as new:
        old.app.job(name="note")(note)
        job = new.app.job(name="note")(note)
        of_old = old(old.app, "enqueue", "note", {"note": "a", "number": 1})
        of_new = new(job, "enqueue", Order("b", 1))
        assert new.burst() == 2
        assert [new(new.app.handle(each.id), "result").number for each in (of_old, of_new)] == [2, 2]
        with pytest.raises(BadEnvelopeError, match="no key of this App fits"):
            old(of_old, "result")


@pytest.mark.parametrize(
    ("codec", "reason"),
    [
        (None, "were written by serializer 'json[+]fernet', which this App does not have"),
        (Zlib(), "were written by serializer 'json[+]fernet', which this App does not have"),
        (Encrypted(OTHER_KEY), "cannot read the arguments: no key of this App fits, or the data was changed"),
    ],
    ids=["none", "another", "another key"],
)
def test_a_worker_that_cannot_read_a_job_says_why(url: str, codec: Any, reason: str) -> None:
    with flavour_of(url, Encrypted(KEY)) as ours, flavour_of(url, codec) as theirs:
        handle = ours(ours.app.job(name="note")(note), "enqueue", Order("a", 1))
        theirs.app.job(name="note")(note)
        theirs.burst()
        with pytest.raises(JobFailed, match=reason):
            ours(handle, "result")


@pytest.mark.parametrize("form", ["json", "msgpack"])
@pytest.mark.parametrize("before", [None, Zlib(least=0), Encrypted(KEY)], ids=["none", "first", "second"])
def test_an_app_reads_what_it_wrote_before_it_had_all_its_codecs(url: str, before: Any, form: Format) -> None:
    both = [Zlib(least=0), Encrypted(KEY)]
    with flavour_of(url, before, format=form) as old, flavour_of(url, both) as new:
        handle = old(old.app.job(name="note")(note), "enqueue", Order("a", 1))
        new.app.job(name="note")(note)
        assert new.burst() == 1
        assert new(new.app.handle(handle.id), "result") == Order("a", 2)


def test_a_codec_gives_bytes(url: str) -> None:
    class Text(Nameless):
        name = "text"

        def encode(self, data: bytes) -> Any:
            return data.decode()

    with flavour_of(url, Text()) as flavour, pytest.raises(SerializationError, match="'text' gives str, not"):
        flavour(flavour.app, "enqueue", "f", 1)


def test_what_could_not_be_read_again_is_not_written(url: str) -> None:
    with flavour_of(url, Zlib()) as flavour, pytest.raises(SerializationError, match="longer than 67108864"):
        flavour(flavour.app, "enqueue", "f", "a" * (MAX_DECODED_BYTES + 1))


@pytest.mark.parametrize("cut", [False, True], ids=["too long", "cut off"])
def test_compressed_data_that_is_too_long_or_cut_off_is_refused(*, cut: bool) -> None:
    data = zlib.compress(os.urandom(2000))[:-3] if cut else zlib.compress(bytes(MAX_DECODED_BYTES + 1))
    with pytest.raises(ValueError, match="cut off, or would be longer"):
        Zlib().decode(data)
    longest = bytes(MAX_DECODED_BYTES)
    assert Zlib().decode(zlib.compress(longest)) == longest


class Nameless:
    name = ""

    def encode(self, data: bytes) -> bytes:
        return data

    decode = encode


@pytest.mark.parametrize(
    ("codec", "error", "message"),
    [
        (Zlib, BadTypeError, "such as Zlib.*; the class Zlib is none"),
        ([Zlib(), "zlib"], BadTypeError, "; str is none"),
        ("zlib", BadTypeError, "; str is none"),
        (5, BadTypeError, "; int is none"),
        (Nameless(), BadArgumentError, "a codec has a name"),
        ([Zlib(), Zlib()], BadArgumentError, "the same name"),
    ],
)
def test_bad_codecs(codec: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        App(codec=codec)


def test_bad_options_of_codecs() -> None:
    with pytest.raises(BadArgumentError, match="at least one key"):
        Encrypted()
    for key in ("short", b"\xff", 5):
        with pytest.raises(BadArgumentError, match="32 bytes in URL-safe base64"):
            Encrypted(key)  # type: ignore[arg-type]
    for least in (-1, "1k"):
        with pytest.raises(BadArgumentError, match="from 0 on"):
            Zlib(least=least)  # type: ignore[arg-type]
    assert all(isinstance(each, Codec) for each in (Zlib(), Encrypted(KEY.decode())))
