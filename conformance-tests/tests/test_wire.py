"""The wire cases: what their files may say, and that a client which sends or reads something else fails."""

import copy
import dataclasses
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from support import adapters

from leaseq_conformance.adapter_pool import AdapterPool
from leaseq_conformance.adapter_protocol import SCHEMA
from leaseq_conformance.case_loader import CaseFileError
from leaseq_conformance.cases import Case, Context
from leaseq_conformance.fault_proxy import Command
from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.redis_server import ExternalServer
from leaseq_conformance.verdict import BrokenError, FailedError
from leaseq_conformance.wire import cases, run
from leaseq_conformance.wire.load import load
from leaseq_conformance.wire.plan import Plan, SilentReplies

GOOD = """
    - name: a-case
      title: A title that says what is shown
      rules: [LQ-ADD-1]
      capabilities: [core]
      steps:
        - call: add
          args: {items: [{id: a, data: x}]}
          sent: [{script: add, argv: [1, a, x, 0], reply: 0}]
          ok: [exists]
"""


@pytest.fixture
def context(url: str) -> Iterator[Context]:
    server = ExternalServer(url)
    command = tuple(adapters.COMMANDS["python_sync"])
    with AdapterPool(server, command) as pool:
        yield Context(server, command, frozenset(), 0, 60, pool)


def named(name: str) -> Case:
    (found,) = [case for case in cases() if case.name == name]
    return found


def changed(name: str, change: Any) -> Case:
    """A case that expects something else: the client, which is right, has to fail it."""
    body = copy.deepcopy(named(name).body)
    change(body["steps"])
    return dataclasses.replace(named(name), body=body)


def first_sent(steps: list[dict[str, Any]], step: int = 0) -> dict[str, Any]:
    exchange: dict[str, Any] = steps[step]["sent"][""][0]
    return exchange


CHANGES: dict[str, tuple[str, Any, str]] = {
    "an argument": ("wire/lease-one", lambda steps: first_sent(steps).update(argv=[1, 30]), "expected b'30'"),
    "an argument more": (
        "wire/lease-one",
        lambda steps: first_sent(steps)["argv"].append(1),
        "word 3 is missing, expected b'1'",
    ),
    "a call less": (
        "wire/lease-one",
        lambda steps: steps[1]["sent"][""].clear(),
        "nothing more was expected",
    ),
    "a call more": (
        "wire/lease-one",
        lambda steps: steps[1]["sent"][""].append(first_sent(steps)),
        "never sent EVALSHA lease",
    ),
    "an answer": ("wire/add-plain", lambda steps: steps[1].update(ok=["added"]), "expected 'added'"),
    "the time of a block": (
        "wire/wait-blocks",
        lambda steps: steps[0]["sent"][""][1].update(most_secs=3.5),
        "is to last",
    ),
}
"""Keys, digests, codes, errors and what they may not say: `make seeded-bugs` has a client that is wrong in each."""


@pytest.mark.slow
@pytest.mark.parametrize("what", CHANGES)
def test_what_differs_fails(what: str, context: Context) -> None:
    name, change, message = CHANGES[what]
    with pytest.raises(FailedError, match=message):
        run(changed(name, change), context)


def test_a_call_between_the_steps_fails(context: Context) -> None:
    """The outcome that is asked for in the background belongs to the step that named it."""
    case = changed("wire/died-is-published", lambda steps: steps[0]["sent"][""].pop())
    with pytest.raises(FailedError, match="the client sent"):
        run(case, context)


IN_TWO_GROUPS = """
    - name: a-case
      title: Of two groups one gives its item back, and settles behind that if it settles
      rules: [LQ-ADD-1]
      capabilities: [core]
      queues: {q: one, r: two}
      steps:
        - call: lease
          args: {duration_ms: 5}
          sent:
            one:
              - {script: release, argv: [1, a, 7, 1, uncounted, 1], one_of: released, reply: ready}
              - {script: settle, argv: [], reply: 0, optional: true}
            two:
              - {script: release, queue: r, argv: [1, a, 7, 1, uncounted, 1], one_of: released, reply: ready}
              - {script: settle, queue: r, argv: [], reply: 0, optional: true}
          ok: []
"""


def played(before: Plan | None, *sent: tuple[str, str]) -> Plan:
    """The plan of that case after a client sent these, behind the plan of a step before."""
    (case,) = load(textwrap.dedent(IN_TWO_GROUPS), "a.yaml")
    late = [] if before is None else before.optional()
    plan = Plan(
        "client", case.body["steps"][0]["sent"], "leaseq:{{g}}:{}:".format, 1, SilentReplies(), late=late
    )
    for number, (script, queue) in enumerate(sent):
        keys = [f"leaseq:{{g}}:{queue}:{key}".encode() for key in SCRIPTS[script].keys]
        argv = [b"1", b"a", b"7", b"1", b"uncounted", b"1"] if script == "release" else []
        head = [b"EVALSHA", SCRIPTS[script].sha1.encode(), str(len(keys)).encode()]
        assert plan.matches(Command(number, "client", 1, (*head, *keys, *argv), script))
    return plan


def test_what_a_step_left_optional_may_come_late_and_takes_nothing_from_the_next() -> None:
    """A client that settles in the background may do so while it already works on the next step."""
    first = played(None, ("release", "q"))
    assert (first.wrong, first.missing()) == ("", [])
    second = played(first, ("settle", "q"), ("release", "q"), ("settle", "q"))
    assert (second.wrong, second.missing()) == ("", [])
    assert (
        "the client sent EVALSHA settle"
        in played(second, ("release", "q"), ("settle", "q"), ("settle", "q")).wrong
    )


def test_one_of_several_comes_once_and_what_follows_it_behind_it() -> None:
    assert "the client sent EVALSHA release" in played(None, ("release", "q"), ("release", "r")).wrong
    assert "the client sent EVALSHA settle" in played(None, ("settle", "q")).wrong
    first = played(None, ("release", "q"))
    assert "the client sent EVALSHA release" in played(first, ("release", "r"), ("release", "q")).wrong


UNKNOWN = "LQ-ADD-" + "99"
"""Not in one piece: what cites a rule that there is not is found everywhere."""

BAD: dict[str, tuple[str, str, str]] = {
    "an unknown key": ("ok: [exists]", "ok: [exists]\n          expect: 1", "expect"),
    "no assertion": ("          ok: [exists]\n", "", "is not valid"),
    "nothing about what is sent": (
        "          sent: [{script: add, argv: [1, a, x, 0], reply: 0}]\n",
        "",
        "is not valid",
    ),
    "an exchange without a reply": (", reply: 0", "", "is not valid"),
    "two replies": ("reply: 0", "reply: 0, drop: true", "is not valid"),
    "an unknown rule": ("LQ-ADD-1", UNKNOWN, f"there is no rule {UNKNOWN}"),
    "an unknown capability": ("[core]", "[speed]", "there is no capability speed"),
    "an unknown script": ("script: add", "script: ack", "there is no script ack"),
    "an unknown method": ("call: add", "call: ack", "there is no method 'ack'"),
    "an unknown argument": ("data: x}", "data: x, payload: y}", "payload"),
    "an unknown queue": ("reply: 0", "reply: 0, targets: [r]", "there is no queue r"),
}


def test_a_right_file_is_read() -> None:
    (case,) = load(textwrap.dedent(GOOD), "good.yaml")
    assert case.name == "wire/a-case"
    assert first_sent(case.body["steps"])["keys"][0] == "q:items"
    assert first_sent(case.body["steps"])["sha1"] == SCRIPTS["add"].sha1


@pytest.mark.parametrize("what", BAD)
def test_a_wrong_file_is_refused(what: str) -> None:
    old, new, message = BAD[what]
    assert old in GOOD
    with pytest.raises(CaseFileError, match=message):
        load(textwrap.dedent(GOOD.replace(old, new)), "bad.yaml")


def test_every_operation_and_capability_has_a_case() -> None:
    bodies = str([case.body for case in cases()])
    assert [name for name in SCRIPTS if f"'script': '{name}'" not in bodies] == []
    calls = {step["call"] for case in cases() for step in case.body["steps"] if "call" in step}
    # no scripts: scenarios show what they do
    scriptless = {"work", "handed_out", "end_handlers", "leave_off", "finish", "live_workers", "steer"}
    of_jobs = {"enqueue", "job", "job_result", "cancel_job"}  # the suite `jobs` has them
    assert set(SCHEMA["$defs"]["methods"]) - calls == scriptless | of_jobs
    named_ones = {capability for case in cases() for capability in case.capabilities}
    without = {"live_workers", "worker"}  # scenarios show them
    without |= {"jobs", "job_worker", "job_chains", "job_schedules"}  # the suite `jobs` does
    assert set(SCHEMA["$defs"]["capability"]["enum"]) - named_ones == without


def test_the_names_are_unique() -> None:
    names = [case.name for case in cases()]
    assert sorted(set(names)) == sorted(names)


def test_a_wrong_adapter_is_an_error_and_no_failure(url: str) -> None:
    """A fault of the adapter says nothing about the client."""
    server = ExternalServer(url)
    command = (sys.executable, "-c", "print('hello')")
    with AdapterPool(server, command) as pool, pytest.raises(BrokenError):
        run(named("wire/add-plain"), Context(server, command, frozenset(), 0, 60, pool))
