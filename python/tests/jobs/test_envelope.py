"""The envelope, results, failures and notes: what stands in items and outcomes, for programs of any language."""

from __future__ import annotations

import base64
import json
import pickle
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support.job_app import JobAppFlavour

import leaseq
import leaseq.jobs
from leaseq.errors import BadTypeError
from leaseq.jobs import App, BadEnvelopeError, envelope, failure, job_state
from leaseq.jobs.cron import schedule_state
from leaseq.jobs.cron.schedule_state import ScheduleState
from leaseq.jobs.envelope import Envelope, Result
from leaseq.jobs.job_state import JobState

if TYPE_CHECKING:
    import redis

CALL = {"v": 1, "function": "mail.send", "args": ["a@example.org"], "kwargs": {"urgent": True}}


def test_the_bytes_of_a_call_are_those_of_the_specification() -> None:
    # LQ-JOB-1, LQ-JOB-2, LQ-JOB-17: in both formats, what may be missing left out, members in the order of the table
    job = Envelope(v=1, function="mail.send", args=["a@example.org"], kwargs={"urgent": True})
    assert envelope.write(job, "json", None) == json.dumps(CALL, separators=(",", ":")).encode()
    packed = envelope.write(job, "msgpack", None)
    assert packed == (
        b"\x84\xa1v\x01\xa8function\xa9mail.send\xa4args\x91\xada@example.org\xa6kwargs\x81\xa6urgent\xc3"
    )
    for data in (packed, envelope.write(job, "json", None)):
        assert envelope.read(data, Envelope, {}) == job


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no job that can be read"),
        (b"hello", "no job that can be read"),
        (b"{", "no job that can be read"),
        (b'{"function":"f"}', "missing required field `v`"),
        (b'{"v":1}', "missing required field `function`"),
        (b'{"v":2,"function":{"new":"form"}}', "of version 2"),
        (msgspec.msgpack.encode({"v": 7}), "of version 7"),
        (b'{"v":2,"function":"f"}', "of version 2"),
        (b'{"v":1,"function":"f","args":{}}', "Expected `array`"),
        (b'{"v":1,"function":"f","kwargs":[]}', "Expected `object`"),
        (b'{"v":1,"function":"f","codec":"own"}', "serializer 'own', which this App does not have"),
        (b"[" * 5000, "no job that can be read"),
        (b'{"v":1,"function":"\xff"}', "no job that can be read"),
        (b"\x82\xa1v\x01\xa8function\xa1\xff", "no job that can be read"),
        (b'{"v":2,"function":"\xff"}', "of version 2|no job that can be read"),
    ],
)
def test_what_is_no_envelope_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(BadEnvelopeError, match=why):
        envelope.read(data, Envelope, {})  # LQ-JOB-19


@pytest.mark.parametrize("name", ["enqueued", "due", "attempt", "timeout"])
@pytest.mark.parametrize("number", [2**53, -(2**53), 10**400])
def test_a_number_that_no_time_has_is_refused(name: str, number: int) -> None:
    """As seconds it is more than a float holds, which ended the worker with a traceback."""
    with pytest.raises(BadEnvelopeError, match="no job that can be read"):
        envelope.read(b'{"v":1,"function":"f","%s":%d}' % (name.encode(), number), Envelope, {})
    note = b'{"v":1,"started":%d}' % number
    assert job_state.read(note, note) == JobState()
    assert schedule_state.read(b'{"v":1,"until":%d}' % number) is None


def test_notes_and_schedules_say_their_version() -> None:
    note = json.loads(job_state.write(JobState(token=5, worker="w")))
    assert note == {"v": 1, "token": 5, "worker": "w"}  # LQ-JOB-10, LQ-JOB-11
    schedule = json.loads(schedule_state.item("s", ScheduleState(until=7)).data)
    assert schedule == {"v": 1, "until": 7}  # LQ-JOB-12
    unsaid = schedule_state.read(b'{"until":7}')  # earlier releases wrote none
    assert unsaid is not None
    assert unsaid.until == 7


@pytest.mark.parametrize("data", [b'{"worker":"\xff"}', b'{"until":1,"rule":"\xff"}', b"["])
def test_a_note_or_schedule_that_cannot_be_read_is_none(data: bytes) -> None:
    assert job_state.read(data, data) == JobState()
    assert schedule_state.read(data) is None


def test_members_that_are_not_known_are_ignored() -> None:
    later = json.dumps({**CALL, "flavour": "red", "due": 5}).encode()
    assert envelope.read(later, Envelope, {}).args == ["a@example.org"]  # LQ-JOB-18


class Pickle:
    name = "pickle"

    def dumps(self, value: Any) -> bytes:
        return pickle.dumps(value)

    def loads(self, data: bytes) -> Any:
        return pickle.loads(data)  # noqa: S301 (what the user chose)


@pytest.mark.parametrize("form", ["msgpack", "json"])
def test_a_serializer_of_ones_own_writes_what_the_formats_cannot(form: Any, url: str) -> None:
    app = App(url, serializer=Pickle(), format=form)

    @app.job(name="same")
    def same(value: Any) -> Any:
        return value

    with JobAppFlavour(app, asynchronous=False) as flavour:
        value = {1: {2, 3}, "c": complex(1, 2)}
        handle = same.enqueue(value)
        assert flavour.burst() == 1
        assert handle.result(0) == value
        assert handle.info().args == (value,)


def test_a_worker_without_the_serializer_lets_the_job_die_with_the_reason(url: str) -> None:
    with App(url, serializer=Pickle()) as theirs:
        handle = theirs.enqueue("same", {1, 2})
    app = App(url)
    with JobAppFlavour(app, asynchronous=False) as flavour:
        flavour.burst()
        with pytest.raises(leaseq.jobs.JobFailed, match="serializer 'pickle', which this App does not have"):
            app.handle(handle.id).result(0)  # LQ-JOB-7


def test_json_is_written_unless_something_else_is_asked_for(url: str) -> None:
    for app, first in ((App(url), b"{"), (App(url, format="msgpack"), b"\x83")):
        with app:
            handle = app.enqueue("f")
            item = app.queue().lease(600)
            assert item is not None
            assert (item.id, item.data[:1]) == (handle.id, first)
            assert app.queue().complete(item)


@pytest.mark.parametrize("form", ["msgpack", "json"])
def test_a_result_is_what_the_specification_says(form: Any, url: str) -> None:
    app = App(url, format=form)

    @app.job(name="double")
    async def double(number: int) -> int:
        return number * 2

    decode = json.loads if form == "json" else msgspec.msgpack.decode
    with JobAppFlavour(app, asynchronous=False) as flavour:
        handle = double.enqueue(21)
        unasked = double.with_options(keep=0).enqueue(1)
        before = app.queue().outcome(handle.id, timeout=0)
        flavour.burst()
        outcome = app.queue().outcome(handle.id, timeout=0)
        content = decode(outcome.content)
        assert outcome.state == "result"
        assert set(content) == {"v", "result", "started", "ended", "worker", "job"}  # LQ-JOB-8
        assert (content["v"], content["result"]) == (1, 42)
        assert content["started"] <= content["ended"]
        assert content["job"]["function"] == "double"
        assert before.keep == 86400.0  # LQ-JOB-3
        assert app.queue().outcome(unasked.id, timeout=0).state == "absent"  # LQ-JOB-22


def test_a_result_of_another_program_is_read(url: str) -> None:
    app = App(url)
    queue = app.queue()
    queue.add_item(leaseq.Item(b'{"v":1,"function":"theirs"}', id="a"), keep=60)
    item = queue.lease(30)
    assert item is not None
    queue.complete(item, result=b'{"v":1,"result":["x",null],"flavour":1}')
    with app:
        assert app.handle("a").result(0) == ["x", None]


def test_long_envelopes_are_not_repeated_in_results() -> None:
    assert bytes(envelope.copy_of(b"{" + b" " * 4094 + b"}"))
    assert not bytes(envelope.copy_of(b"{" + b" " * 4095 + b"}"))  # LQ-JOB-8
    written = envelope.write(Result(v=1, job=envelope.copy_of(b"x" * 5000)), "json", None)
    assert written == b'{"v":1}'


def test_binary_in_json_is_base64() -> None:
    job = Envelope(v=1, function="f", codec="own", body=b"\xff\x00")
    document = json.loads(msgspec.json.encode(job))
    assert base64.b64decode(document["body"]) == b"\xff\x00"


def test_the_text_of_a_failure() -> None:
    # LQ-JOB-9
    text = failure.written("ValueError", "no such\norder", "Traceback\n  here\n", "w:1", 1772366400.25)
    assert text == (
        "ValueError: no such order\nworker: w:1\nstarted: 2026-03-01T12:00:00.250+00:00\n\nTraceback\n  here\n"
    )
    read = failure.read(text)
    assert (read.type, read.message, read.worker) == ("ValueError", "no such order", "w:1")
    assert read.started == datetime(2026, 3, 1, 12, 0, 0, 250000, tzinfo=UTC).timestamp()
    assert read.traceback == "Traceback\n  here\n"


@pytest.mark.parametrize("letter", ["x", "é", "𝄞"])
def test_a_long_failure_is_cut_at_its_beginning(letter: str) -> None:
    text = failure.written("E", letter * 9000, letter * 9000 + "the end", "w", 1.0)
    assert len(text.encode()) <= 8192  # LQ-JOB-23
    assert text.endswith("the end")
    assert failure.read(text).type == "E"


@pytest.mark.parametrize("kind", ["Foo$Bar", "$", "_", ".Foo", "a.2", "größe.Ärger", "त्रुटि"])
def test_a_kind_of_failure_has_letters_digits_and_some_signs(kind: str) -> None:
    """As in spec/jobs.md, and as Python names classes: workers in other languages have other names."""
    read = failure.read(f"{kind}: no\nworker: w:1\n\nTraceback\n")
    assert read == failure.Failure(kind, "no", "Traceback\n", "w:1")


@pytest.mark.parametrize("kind", ["", "2nd", "no such", "a-b", "Foo[int]"])
def test_what_is_no_kind_of_failure_is_part_of_a_message(kind: str) -> None:
    text = f"{kind}: no\n\n"
    assert failure.read(text) == failure.Failure(message=text)


@pytest.mark.parametrize("text", ["", "leased 6 times, which is more", "some words: more", "\n\n"])
def test_a_text_of_another_form_is_a_message(text: str) -> None:
    assert failure.read(text) == failure.Failure(message=text)


def test_what_cannot_be_written_is_refused_where_it_is_enqueued(url: str, redis_client: redis.Redis) -> None:
    app = App(url)
    with app:
        with pytest.raises(
            leaseq.jobs.SerializationError, match=r"argument 1 of f, of type object, would not arrive"
        ):
            app.enqueue("f", object())
        assert issubclass(leaseq.jobs.SerializationError, TypeError)
        with pytest.raises(BadTypeError, match="a serializer has name, dumps and loads"):
            App(url, serializer=pickle)  # type: ignore[arg-type]
    assert not redis_client.keys()


def test_a_result_that_cannot_be_written_kills_the_job_with_the_reason(url: str) -> None:
    app = App(url)

    @app.job(name="f", retries=4)
    def f() -> Any:
        return object()

    with JobAppFlavour(app, asynchronous=False) as flavour:
        handle = f.enqueue()
        assert flavour.burst() == 1
        with pytest.raises(leaseq.jobs.JobFailed, match="result of f, of type object, would not arrive"):
            handle.result(0)
