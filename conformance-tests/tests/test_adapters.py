"""The adapters of both languages, and what the harness makes of adapters that break the protocol."""

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from support import adapters

from leaseq_conformance.adapter_process import AdapterFaultError, AdapterProcess
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


def test_several_calls_wait_at_a_time(actor: AdapterProcess) -> None:
    actor.open("r", "r", "q").ok  # noqa: B018
    first = actor.start("q", "lease", duration_ms=30_000, wait_ms=None)
    second = actor.start(None, "lease_any", queues=["r"], duration_ms=30_000, wait_ms=3_600_000)
    assert actor.call("r", "add", items=[item("a")]).ok == ["added"]
    assert second.answer().ok["queue"] == "r"
    assert not first.done
    actor.call("q", "add", items=[item("a")]).ok  # noqa: B018
    assert len(first.answer().ok["leases"]) == 1


def test_hold_tells_of_the_loss(actor: AdapterProcess, redis_client: redis.Redis) -> None:
    actor.call("q", "add", items=[item("a"), item("b")]).ok  # noqa: B018
    # a short time only makes the heartbeats come soon: no other client leases, so nothing is ever reclaimed
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


def test_what_is_no_method_is_never_sent() -> None:
    with pytest.raises(MessageError, match="there is no method"):
        check_request({"id": 1, "op": "call", "queue": "q", "method": "ack", "args": {}})
    with pytest.raises(MessageError, match="duration"):
        check_request({"id": 1, "op": "call", "queue": "q", "method": "lease", "args": {"duration": 30}})


def test_the_page_names_every_method() -> None:
    page = Path(__file__).parents[1].joinpath("ADAPTER.md").read_text()
    assert [name for name in METHODS if f"`{name}`" not in page] == []


GREETING = {
    "protocol": 2,
    "client": {"name": "x", "version": "0", "language": "x"},
    "capabilities": [],
    "scripts": {},
}


@pytest.mark.slow
def test_an_adapter_of_the_version_before_runs_what_it_can(url: str) -> None:
    """A port need not change for a new version of the adapter protocol; what it cannot be asked is skipped, not passed."""
    body = "from conformance_adapter import dispatch, sync_client; dispatch.PROTOCOL = 2; sync_client.main()"
    cases = ("wire/add-plain", "wire/wait-client-closed", "wire/milliseconds-and-parts")
    chosen = [word for case in cases for word in ("--case", case)]
    run = [sys.executable, "-c", "from leaseq_conformance.cli import main; main()", "run", "--json"]
    ran = subprocess.run(
        [*run, "--redis", url, *chosen, "--", sys.executable, "-c", body],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    results = {found["case"]["name"]: found["outcome"] for found in json.loads(ran.stdout)["results"]}
    assert results == {cases[0]: "pass", cases[1]: "skip", cases[2]: "skip"}


BROKEN = {
    "an unknown id": ("answer(99, {'ok': {}})", "an answer to nothing"),
    "an answer twice": (
        "answer(message['id'], {'ok': {}}); answer(message['id'], {'ok': {}})",
        "an answer to nothing",
    ),
    "a field too many": ("answer(message['id'], {'ok': {'fine': True}})", "Additional properties"),
    "two answers in one": ("answer(message['id'], {'ok': {}, 'cancelled': True})", "too many"),
    "a separate fault": ("answer(message['id'], {'harness': 'oh'})", "the adapter says: oh"),
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
    body, message = BROKEN[name]
    actor = AdapterProcess("broken", program(body), "redis://127.0.0.1:1")

    def use() -> None:
        with actor:
            for handle in "qr":
                actor.open(handle, handle).ok  # noqa: B018

    with pytest.raises(AdapterFaultError, match=message) as raised:
        use()
    assert raised.value.verdict == "error"


def test_an_adapter_that_does_not_end_is_an_error() -> None:
    actor = AdapterProcess("deaf", program("time.sleep(3600)"), "redis://127.0.0.1:1")
    actor.send({"op": "open", "queue": "q", "name": "q", "group": None})
    with pytest.raises(AdapterFaultError, match="did not exit"):
        actor.stop(0.1)


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
    page = Path(__file__).parents[2].joinpath("spec", "12-conformance.md").read_text()
    named = {"core", *re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)}
    assert set(SCHEMA["$defs"]["capability"]["enum"]) == named
    assert actor.capabilities == named


def test_the_scripts_are_those_of_the_manifest(actor: AdapterProcess) -> None:
    manifest = json.loads(Path(__file__).parents[2].joinpath("lua", "manifest.json").read_text())
    assert actor.hello["scripts"] == {name: script["sha1"] for name, script in manifest["scripts"].items()}
