"""Histories: what is right passes, and each way of being wrong is found."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from support.history_builder import HOUR, HistoryBuilder

from leaseq_conformance.cases import Context
from leaseq_conformance.cli.history import history as history_command
from leaseq_conformance.history import replay, suite, workload
from leaseq_conformance.history.expected_answers import expected
from leaseq_conformance.history.monitor_log import Witness
from leaseq_conformance.history.record import History, Left
from leaseq_conformance.history.replies import decoded
from leaseq_conformance.redis_server import ExternalServer
from leaseq_conformance.verdict import BrokenError, Outcome, UnjudgedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import redis

ADAPTER = (sys.executable, "-m", "conformance_adapter.sync_client")
pytestmark = pytest.mark.timeout(600)


def right() -> HistoryBuilder:
    """Two workers on two items: one lease runs out, the late completion wins, one item is given back."""
    builder = HistoryBuilder()
    builder.add(b"a")
    builder.add(b"b", b"other")
    first = builder.lease("w1")
    builder.extend("w1", b"a", first)
    builder.forge(b"a")
    second = builder.lease("w2")
    builder.release("w2", b"b", second)
    third = builder.lease("w2")
    builder.extend("w1", b"a", first)
    assert third > second > first
    builder.complete("w1", b"a", first)
    builder.complete("w2", b"a", third)
    builder.add(b"a", b"again")
    builder.add(b"a", b"never")
    fourth = builder.wait("w1")[5]
    builder.hand_off("w1", b"b", third, b"d")
    builder.complete_and_lease("w1", b"a", fourth)
    builder.outcome("w2", b"a")
    fifth = builder.lease("w2")
    builder.keep("w2", b"d", fifth, b"done")
    builder.outcome("w2", b"d")
    builder.wait("w2")
    return builder


def wrong(history: History) -> bool:
    """Return whether the replay found something."""
    return bool(replay.check(history))


def test_what_is_right_passes() -> None:
    history = right().end()
    assert replay.check(history) == []
    assert suite.judge(history).outcome is Outcome.PASS


def completed_twice(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    token = builder.lease("w1")
    builder.complete("w1", b"a", token)
    builder.complete("w1", b"a", token, lie=lambda _: 1)


def lost_in_a_lease(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    builder.lease("w1", lie=lambda _: [-1, 0, 0])


def token_going_back(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    token = builder.lease("w1")
    builder.forge(b"a")
    builder.lease("w2", lie=lambda reply: [*reply[:5], token - 1, *reply[6:]])


def two_leases_at_once(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    builder.lease("w1")
    later = builder.time + 1000
    lease = [0, later + 3_600_000_000, 1, b"a", b"data", later, 2]
    builder.lease("w2", lie=lambda _: lease)


def superseded_extends(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    old = builder.lease("w1")
    builder.forge(b"a")
    builder.lease("w2")
    builder.extend("w1", b"a", old, lie=lambda _: builder.time + 3_600_000_000)


def added_over_another(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    builder.add(b"a", b"new", lie=lambda _: builder.time)


def definite_though_it_ran(builder: HistoryBuilder) -> None:
    builder.add(b"a", lost=True, definite=True)
    builder.lease("w1")


def run_twice(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    builder.add(b"b")
    builder.lease("w1", runs=2)


def left_elsewhere(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    builder.lease("w1")
    item = builder.queue.items[b"a"]
    builder.end().left["a"] = Left("ready", item.data, item.attempt, item.token)
    builder.queue.items.clear()


def result_of_another(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    builder.keep("w1", b"a", builder.lease("w1"), b"done")
    builder.outcome("w2", b"a", lie=lambda reply: [*reply[:5], b"of b"])


def follow_up_over_another(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    token = builder.lease("w1")
    builder.add(b"b")
    builder.hand_off("w1", b"a", token, b"b", lie=lambda reply: [reply[0], builder.time])


def follow_up_lost(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    builder.hand_off("w1", b"a", builder.lease("w1"), b"b")
    del builder.queue.items[b"b"]


def wait_that_leases_twice(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    builder.add(b"b")
    builder.wait("w1", runs=2)


def fused_completes_twice(builder: HistoryBuilder) -> None:
    builder.add(b"a")
    token = builder.lease("w1")
    builder.complete("w1", b"a", token)
    builder.complete_and_lease("w1", b"a", token, lie=lambda reply: [*reply[:-1], 1])


BROKEN = [
    # one for each way in which the replay finds something; what the model says is the vectors' to show
    result_of_another,
    follow_up_over_another,
    follow_up_lost,
    wait_that_leases_twice,
    fused_completes_twice,
    completed_twice,
    lost_in_a_lease,
    token_going_back,
    two_leases_at_once,
    superseded_extends,
    added_over_another,
    definite_though_it_ran,
    run_twice,
    left_elsewhere,
]


@pytest.mark.parametrize("breaking", BROKEN, ids=lambda breaking: str(breaking.__name__))
def test_each_broken_history_is_found(breaking: Callable[[HistoryBuilder], None]) -> None:
    builder = HistoryBuilder()
    builder.add(b"x")
    builder.complete("w1", b"x", builder.lease("w1"))
    assert not wrong(builder.end())
    breaking(builder)
    assert wrong(builder.end())


def test_a_lost_reply_may_have_run_or_not() -> None:
    for ran in (True, False):
        builder = HistoryBuilder()
        builder.add(b"a", lost=True)
        if not ran:
            builder.queue.items.clear()
            builder.history.sent.clear()
            builder.history.ran.clear()
        history = builder.end()
        assert not wrong(history)
    builder = HistoryBuilder()
    builder.add(b"a")
    builder.lease("w1", lost=True)
    builder.forge(b"a")
    token = builder.lease("w2")
    builder.complete("w2", b"a", token, lost=True)
    assert not wrong(builder.end())


def test_an_answer_that_is_not_what_the_server_said_is_found() -> None:
    builder = HistoryBuilder()
    builder.add(b"a")
    history = builder.end()
    history.calls[0].answer = {"ok": ["exists"]}
    assert wrong(history)


def test_a_call_that_is_not_sent_as_it_was_made_is_found() -> None:
    builder = HistoryBuilder()
    builder.add(b"a")
    builder.complete("w1", b"a", builder.lease("w1"))
    history = builder.end()
    history.calls[-1].args["items"][0].update(keep_ms=HOUR, result=b"done")
    assert any("is missing" in wrong for wrong in replay.check(history))


def test_a_reply_that_was_lost_and_is_told_is_found() -> None:
    builder = HistoryBuilder()
    builder.add(b"a")
    builder.lease("w1")
    history = builder.end()
    history.sent[-1].delivered = False
    assert any("LQ-CLIENT-1" in wrong for wrong in replay.check(history))


def test_calls_in_the_wrong_order_are_found() -> None:
    builder = HistoryBuilder()
    builder.add(b"a")
    builder.add(b"b")
    history = builder.end()
    first, second = history.calls
    first.begin, second.begin = second.begin, first.begin
    first.end, second.end = second.end, first.end
    assert any("was over before" in wrong for wrong in replay.check(history))


def test_an_error_for_no_reason_is_found() -> None:
    builder = HistoryBuilder()
    builder.add(b"a", lost=True)
    history = builder.end()
    history.calls[0].fault = ""
    assert any("nothing was done to it" in wrong for wrong in replay.check(history))


def test_a_wrong_history_is_shown_and_written(tmp_path: Path) -> None:
    builder = HistoryBuilder()
    completed_twice(builder)
    history = builder.end()
    verdict = suite.judge(history)
    assert verdict.outcome is Outcome.FAIL
    assert "the model says 0" in verdict.message
    assert any("w1 complete" in line for line in verdict.transcript)
    history.write(tmp_path / "history.jsonl")
    assert History.read(tmp_path / "history.jsonl") == history
    (tmp_path / "other").write_text('{"format": 0}\n')
    with pytest.raises(ValueError, match="no history of format"):
        History.read(tmp_path / "other")


def test_a_seed_always_draws_the_same_programs() -> None:
    capabilities = frozenset({"core", "clean", "cancel"})
    assert workload.draw(7, capabilities) == workload.draw(7, capabilities)
    assert workload.draw(7, capabilities) != workload.draw(8, capabilities)
    methods = {
        step.method for steps in workload.draw(7, frozenset({"core"})).actors.values() for step in steps
    }
    assert methods == {"add", "lease", "complete", "extend", "release"}
    faults = {
        step.fault
        for seed in range(5)
        for steps in workload.draw(seed, capabilities).actors.values()
        for step in steps
    }
    assert faults == {"", *workload.FAULTS}


def test_the_witness_tells_every_byte_in_the_servers_order(redis_client: redis.Redis) -> None:
    script = "return 1"
    digest = redis_client.script_load(script)
    every = bytes(range(256))
    with Witness(redis_client, {digest: "one"}, "p:") as witness:
        redis_client.evalsha(digest, 1, "p:a", every)
        redis_client.eval(script, 1, "p:a", b'"\\x41"')
        redis_client.evalsha(digest, 1, "other", b"")
        redis_client.eval("return redis.call('GET', KEYS[1])", 1, "p:a")
    assert witness.fault is None
    assert [ran.argv for ran in witness.ran] == [[every], [b'"\\x41"'], []]
    first, second, other = (ran.script for ran in witness.ran)
    assert (first, second) == ("one", "one")
    assert other.startswith("script ")


@pytest.mark.parametrize(
    ("frame", "value"),
    [
        (b":-1\r\n", -1),
        (b"$3\r\na\r\n\r\n", b"a\r\n"),
        (b"*2\r\n:1\r\n*1\r\n$0\r\n\r\n\r\n", [1, [b""]]),
        (b"_\r\n", None),
        (b"$-1\r\n", None),
    ],
)
def test_replies_are_read(frame: bytes, value: Any) -> None:
    if frame.endswith(b"\r\n\r\n\r\n"):
        frame = frame[:-2]
    assert decoded(frame) == value


@pytest.mark.parametrize("frame", [b"+OK\r\n", b":1\r\n:2\r\n"])
def test_what_is_no_reply_of_a_script_is_refused(frame: bytes) -> None:
    with pytest.raises(ValueError, match="repl"):
        decoded(frame)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["crowd", "faults"])
def test_the_python_client_passes(name: str, url: str) -> None:
    case = next(case for case in suite.cases() if case.name == f"history/{name}")
    with ExternalServer(url) as server:
        claims = frozenset({"core", *workload.NEEDS.values()})
        context = Context(server, ADAPTER, claims, seed=11)
        made = suite.record(context, 11, **case.body)
        verdict = suite.judge(made)
    assert (verdict.outcome, verdict.message) == (Outcome.PASS, "")
    assert len(made.ran) > 50
    assert any(call.lost for call in made.calls) == (name == "faults")
    if name == "crowd":
        for method in ("wait_outcome", "outcome", "hand_off", "complete_and_lease", "lease", "complete"):
            assert a_lie_is_found(made, method), method


def a_lie_is_found(made: History, method: str) -> bool:
    """Return whether it is found that a client told its caller another answer to one call than the server gave."""
    call = next(call for call in made.calls if call.method == method and call.answer and call.answer["ok"])
    builder, call.answer = call.answer, {"ok": changed(call.answer["ok"]) if call.answer else None}
    found = any(f"call {call.number} " in wrong for wrong in replay.check(made))
    call.answer = builder
    return found


def changed(builder: Any) -> Any:
    """The answer of an adapter with its first part changed."""
    if isinstance(builder, list):
        return [changed(builder[0]), *builder[1:]]
    if isinstance(builder, dict) and "leases" in builder:
        return {**builder, "leases": [*builder["leases"], {"id": b"another"}]}
    if isinstance(builder, dict):
        name = "completed" if "completed" in builder else "attempt"
        return {**builder, name: changed(builder[name])}
    return not builder


def test_an_adapter_that_breaks_its_protocol_is_no_verdict_on_a_history(url: str) -> None:
    with ExternalServer(url) as server:
        context = Context(server, (sys.executable, "-c", "print('noise')"), frozenset({"core"}))
        made = suite.record(context, 1, clients=2, steps=2, faults=0)
    with pytest.raises(BrokenError, match=r"w[12]"):
        suite.judge(made)
    made.complaints = ["unknown: w1 did not answer"]
    with pytest.raises(UnjudgedError, match="w1 did not answer"):
        suite.judge(made)


def test_the_command_runs_rounds_and_tells(url: str, tmp_path: Path) -> None:
    sizes = "--runs 1 --steps 5 --clients 2 --seed 7 --patience 90"
    options = ["--redis", url, *sizes.split(), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(history_command, [*options, "--", *ADAPTER])
    assert done.exit_code == 0, done.output
    assert "1 of 1 histories of leaseq" in done.output
    assert not (tmp_path / "out").exists()


def test_who_waits_for_an_outcome_is_told_absent_where_the_item_is_another() -> None:
    looks = [[b"ready", 5, 0, 0, 0, b""], [b"result", 9, 9, 1, 0, b"of the later item"]]
    args = {"id": b"a", "wait_ms": 100}
    assert expected("wait_outcome", looks, args=args)["state"] == "absent"
    looks[1][1] = 5
    assert expected("wait_outcome", looks, args=args)["content"] == b"of the later item"
