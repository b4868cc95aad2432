"""The adapters of both languages, and what the harness makes of adapters that break the protocol."""

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from support import adapters

from leaseq_conformance.adapter_process import AdapterFaultError, AdapterProcess, NoAnswerError
from leaseq_conformance.adapter_protocol import METHODS, SCHEMA, MessageError, b64, check_request


@pytest.fixture(params=adapters.params())
def actor(request: pytest.FixtureRequest, url: str) -> Iterator[AdapterProcess]:
    with AdapterProcess("a", adapters.COMMANDS[request.param], url) as actor:
        actor.open("q", "q").ok  # noqa: B018
        yield actor


def item(name: str, data: bytes = b"data", **more: object) -> dict[str, object]:
    return {"id": b64(name.encode()), "data": b64(data), **more}


def lease(actor: AdapterProcess, handle: str = "q", **args: object) -> dict[str, Any]:
    """The one lease that there is."""
    (leased,) = actor.call(handle, "lease", duration_ms=30_000, **args).ok["leases"]
    return dict(leased)


def held(leased: dict[str, Any], **more: object) -> dict[str, object]:
    return {"id": leased["id"], "token": leased["token"], **more}


def test_life_of_an_item(actor: AdapterProcess) -> None:
    assert actor.call("q", "add", items=[item("a", b"\x00\xff"), item("a")]).ok == ["added", "exists"]
    leased = actor.call("q", "lease", duration_ms=30_000).ok
    assert leased["queue"] == "q"
    (first,) = leased["leases"]
    assert (first["id"], first["data"], first["attempt"]) == (b64(b"a"), b64(b"\x00\xff"), 1)
    assert actor.call("q", "lease", duration_ms=1).ok == {"queue": None, "leases": []}
    assert actor.call("q", "extend", items=[held(first)], duration_ms=60_000).ok[0] > first["deadline"]
    assert actor.call("q", "complete", items=[held(first)], only_current=True).ok == [True]
    assert actor.call("q", "complete", items=[held(first)]).ok == [False]
    assert actor.call("q", "extend", items=[held(first)], duration_ms=60_000).ok == [None]
    assert actor.call("q", "release", items=[held(first)]).ok == ["lost"]


def test_options_come_back_with_the_lease(actor: AdapterProcess) -> None:
    given = item("a", content_type=b64(b"text/plain"), headers={"trace": b64(b"\xff7")})
    options = {
        "priority": 3,
        "max_attempts": 2,
        "expires_in_ms": 3_600_000,
        "expires_to": "dead",
        "keep_ms": 60_000,
    }
    actor.call("q", "add", items=[given], options=options).ok  # noqa: B018
    (info,) = actor.call("q", "inspect", ids=[b64(b"a")]).ok
    assert (info["state"], info["priority"], info["max_attempts"], info["keep_ms"]) == ("ready", 3, 2, 60_000)
    assert int(info["expires"]) > int(info["created"])
    leased = lease(actor)
    assert (leased["content_type"], leased["headers"]) == (given["content_type"], given["headers"])
    assert leased["keep_ms"] == 60_000


def test_hand_off_and_outcome(actor: AdapterProcess) -> None:
    actor.open("r", "r", "q").ok  # noqa: B018
    actor.call("q", "add", items=[item("a")], options={"keep_ms": 60_000}).ok  # noqa: B018
    leased = lease(actor)
    then = [
        {"queue": "r", "item": item("b")},
        {"queue": "q", "item": item("b"), "options": {"delay_ms": 60_000}},
    ]
    entry = held(leased, result=b64(b"done"), then=then)
    assert actor.call("q", "hand_off", items=[entry]).ok == [{"completed": True, "added": ["added", "added"]}]
    (told,) = actor.call("q", "outcome", ids=[b64(b"a")]).ok
    assert (told["state"], told["content"]) == ("result", b64(b"done"))
    assert actor.call("q", "wait_outcome", id=b64(b"a"), wait_ms=60_000).ok == told
    answers = actor.call("q", "remove", ids=[b64(b"b"), b64(b"c")]).ok
    assert answers == ["delayed", "absent"]


def test_complete_and_lease(actor: AdapterProcess) -> None:
    actor.call("q", "add", items=[item("a"), item("b")]).ok  # noqa: B018
    answer = actor.call("q", "complete_and_lease", **held(lease(actor)), duration_ms=30_000).ok
    assert answer["completed"] is True
    assert [one["id"] for one in answer["leases"]] == [b64(b"b")]
    last = actor.call("q", "complete_and_lease", **held(answer["leases"][0]), duration_ms=30_000).ok
    assert last == {"completed": True, "leases": []}


def test_ends_of_a_lease_and_dead_letters(actor: AdapterProcess) -> None:
    actor.call("q", "add", items=[item(name) for name in "abc"]).ok  # noqa: B018
    a, b, c = actor.call("q", "lease", count=3, duration_ms=30_000).ok["leases"]
    assert actor.call("q", "release", items=[held(a)], delay_ms=60_000, error="late").ok == ["delayed"]
    assert actor.call("q", "release", items=[held(b)], uncounted=True).ok == ["ready"]
    assert actor.call("q", "dead_letter", items=[held(c), held(a)], error="bad").ok == [True, False]
    listed = actor.call("q", "list", state="dead", offset=0, limit=10, order="backward").ok
    assert (listed["total"], [one["id"] for one in listed["items"]]) == (1, [b64(b"c")])
    infos = actor.call("q", "inspect", ids=[b64(b"a"), b64(b"c")]).ok
    assert [(one["state"], one["error"]) for one in infos] == [("delayed", "late"), ("dead", "bad")]
    assert actor.call("q", "purge", ids=[b64(b"c")], older_than_ms=3_600_000).ok == [False]
    assert actor.call("q", "revive", ids=[b64(b"c"), b64(b"a")]).ok == [True, False]
    actor.call("q", "dead_letter", items=[held(lease(actor))]).ok  # noqa: B018
    stats = actor.call("q", "stats").ok
    assert (stats["dead"], stats["ready"], stats["delayed"], stats["paused"]) == (1, 1, 1, False)
    assert actor.call("q", "purge", ids=[b64(b"b")]).ok == [True]


def test_limits_and_cleaning(actor: AdapterProcess) -> None:
    assert actor.call("q", "configure", max_items=1).ok == {}
    error = actor.call("q", "add", items=[item("a"), item("b")]).error
    assert (error["code"], error["definite"]) == ("LEASEQ_FULL", True)
    assert error["answers"] == ["added", "full"]
    waiting = actor.start("q", "add", items=[item("b")], wait_ms=None)
    assert actor.call("q", "complete", items=[held(lease(actor))]).ok == [True]
    actor.call("q", "light_clean").ok  # noqa: B018
    assert waiting.answer().ok == ["added"]
    assert actor.call("q", "pause").ok == {}
    assert actor.call("q", "lease", duration_ms=30_000).ok["leases"] == []
    assert actor.call("q", "resume").ok == {}
    lease(actor)
    cleaned = actor.call("q", "light_clean").ok
    assert cleaned == {"promoted": 0, "reclaimed": 0, "died": 0, "expired": 0, "pruned": 0}
    assert actor.call("q", "deep_clean", dry_run=True).ok == {}


def test_several_calls_wait_at_a_time(actor: AdapterProcess) -> None:
    actor.open("r", "r", "q").ok  # noqa: B018
    first = actor.start("q", "lease", duration_ms=30_000, wait_ms=None)
    second = actor.start(None, "lease_any", queues=["r"], duration_ms=30_000, wait_ms=3_600_000)
    assert actor.call("r", "add", items=[item("a")]).ok == ["added"]
    assert second.answer().ok["queue"] == "r"
    assert not first.done
    actor.call("q", "add", items=[item("a")]).ok  # noqa: B018
    assert len(first.answer().ok["leases"]) == 1


def test_a_wait_is_ended(actor: AdapterProcess) -> None:
    waiting = actor.start("q", "lease", duration_ms=30_000, wait_ms=None)
    answer = waiting.cancel().answer()
    if answer.kind == "unsupported":
        assert answer.value == "cancel"
        actor.close("q").ok  # noqa: B018
    assert waiting.answer().kind == "cancelled"


def test_hold_tells_of_the_loss(actor: AdapterProcess, redis_client: redis.Redis) -> None:
    actor.call("q", "add", items=[item("a"), item("b")]).ok  # noqa: B018
    # a short time only makes the beats come soon: nobody else leases, so nothing is ever reclaimed
    short, other = actor.call("q", "lease", count=2, duration_ms=300).ok["leases"]
    for one in (short, other):
        assert actor.call("q", "hold", **held(one)).ok == {}
    lost = actor.start("q", "lost", **held(short))
    unharmed = actor.start("q", "lost", **held(other))
    assert actor.call("q", "remove", ids=[short["id"]]).ok[0] != "absent"
    assert lost.answer().ok == {}
    assert not unharmed.done
    # ended before its item is: a beat after the completion would tell of a loss
    assert unharmed.cancel().answer().ok == {}
    assert unharmed.answer().kind == "cancelled"
    assert actor.call("q", "complete", items=[held(other)]).ok == [True]


@pytest.mark.parametrize("transaction", [False, True])
def test_pipeline(actor: AdapterProcess, transaction: bool) -> None:
    calls = [{"items": [item("a"), item("b")]}, {"items": [item("a")], "options": {"delay_ms": 1000}}]
    answer = actor.call("q", "pipeline", transaction=transaction, calls=calls).ok
    assert answer == [["added", "added"], ["exists"]]


def test_a_bad_name_is_refused(actor: AdapterProcess) -> None:
    assert actor.open("bad", "no spaces").error["definite"] is True


def test_what_is_no_method_is_never_sent() -> None:
    with pytest.raises(MessageError, match="there is no method"):
        check_request({"id": 1, "op": "call", "queue": "q", "method": "ack", "args": {}})
    with pytest.raises(MessageError, match="duration"):
        check_request({"id": 1, "op": "call", "queue": "q", "method": "lease", "args": {"duration": 30}})


def test_the_page_names_every_method() -> None:
    page = Path(__file__).parents[3].joinpath("conformance-tests", "ADAPTER.md").read_text()
    assert [name for name in METHODS if f"`{name}`" not in page] == []


GREETING = {
    "protocol": 2,
    "client": {"name": "x", "version": "0", "language": "x"},
    "capabilities": [],
    "scripts": {},
}
BROKEN = {
    "noise": ("print('Loading...')", "Expecting value"),
    "an unknown id": ("answer(99, {'ok': {}})", "an answer to nothing"),
    "an answer twice": (
        "answer(message['id'], {'ok': {}}); answer(message['id'], {'ok': {}})",
        "an answer to nothing",
    ),
    "a field too many": ("answer(message['id'], {'ok': {'fine': True}})", "Additional properties"),
    "two answers in one": ("answer(message['id'], {'ok': {}, 'cancelled': True})", "too many"),
    "a fault of its own": ("answer(message['id'], {'harness': 'oh'})", "the adapter says: oh"),
    "a crash": ("raise SystemExit(3)", "exit code 3"),
}


def program(body: str) -> list[str]:
    """An adapter that greets and then does this for each message."""
    text = f"""
        import json, sys, time
        def answer(number, reply):
            print(json.dumps({{"id": number, **reply}}), flush=True)
        for line in sys.stdin:
            message = json.loads(line)
            if message["op"] == "hello":
                answer(message["id"], {{"ok": {json.dumps(GREETING)}}})
                continue
            {body}
    """
    return [sys.executable, "-c", textwrap.dedent(text)]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_adapter_is_an_error(name: str) -> None:
    body, says = BROKEN[name]
    actor = AdapterProcess("broken", program(body), "redis://127.0.0.1:1")

    def use() -> None:
        with actor:
            for handle in "qr":
                actor.open(handle, handle).ok  # noqa: B018

    with pytest.raises(AdapterFaultError, match=says) as raised:
        use()
    assert raised.value.verdict == "error"


def test_an_adapter_that_is_silent_is_unknown() -> None:
    with AdapterProcess("silent", program("pass"), "redis://127.0.0.1:1") as actor:
        waiting = actor.send({"op": "open", "queue": "q", "name": "q", "group": None})
        with pytest.raises(NoAnswerError) as raised:
            waiting.answer(0.1)
    assert raised.value.verdict == "unknown"


def test_an_adapter_that_does_not_end_is_an_error() -> None:
    actor = AdapterProcess("deaf", program("time.sleep(3600)"), "redis://127.0.0.1:1")
    actor.send({"op": "open", "queue": "q", "name": "q", "group": None})
    with pytest.raises(AdapterFaultError, match="did not exit"):
        actor.end(0.1)


def test_an_adapter_that_cannot_be_started_is_an_error() -> None:
    with pytest.raises(AdapterFaultError, match="cannot be started"):
        AdapterProcess("none", ["/no/such/adapter"], "redis://127.0.0.1:1")


def test_stderr_is_kept_and_no_verdict() -> None:
    body = "print('a warning', file=sys.stderr); answer(message['id'], {'ok': {}})"
    with AdapterProcess("noisy", program(body), "redis://127.0.0.1:1") as actor:
        assert actor.open("q", "q").ok == {}
    assert "!! a warning" in actor.transcript


def test_a_killed_actor_answers_killed() -> None:
    with AdapterProcess("killed", program("pass"), "redis://127.0.0.1:1") as actor:
        waiting = actor.send({"op": "open", "queue": "q", "name": "q", "group": None})
        actor.kill()
        assert waiting.answer().kind == "killed"
        assert actor.open("q", "q").kind == "killed"


def test_the_capabilities_are_those_of_the_specification(actor: AdapterProcess) -> None:
    page = Path(__file__).parents[3].joinpath("spec", "12-conformance.md").read_text()
    named = {"core", *re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)}
    assert set(SCHEMA["$defs"]["capability"]["enum"]) == named
    assert actor.capabilities == named


def test_the_scripts_are_those_of_the_manifest(actor: AdapterProcess) -> None:
    manifest = json.loads(Path(__file__).parents[3].joinpath("lua", "manifest.json").read_text())
    assert actor.hello["scripts"] == {name: script["sha1"] for name, script in manifest["scripts"].items()}
