"""Scenarios: what the loader refuses, what the engine fails for, and what it does not judge."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from leaseq_conformance.adapter_pool import AdapterPool
from leaseq_conformance.adapter_protocol import b64
from leaseq_conformance.case_loader import CaseFileError
from leaseq_conformance.cases import Case, Context
from leaseq_conformance.redis_server import open_server
from leaseq_conformance.rules import capabilities, rules
from leaseq_conformance.runner import run_case
from leaseq_conformance.scenarios import load, values
from leaseq_conformance.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.verdict import Verdict

ADAPTER = (sys.executable, "-m", "conformance_adapter.sync_client")
CLAIMED = frozenset(capabilities())

ADD: dict[str, Any] = {"call": "p.add", "args": {"items": [{"id": "a", "data": "x"}]}, "ok": ["added"]}
LEASE: dict[str, Any] = {"call": "p.lease", "args": {"duration_ms": 30000}}
RIGHT: dict[str, Any] = {
    "name": "right",
    "title": "A scenario that is right",
    "rules": ["LQ-ADD-1"],
    "capabilities": ["core"],
    "actors": {"p": "client"},
    "steps": [ADD],
}


def scenario(*steps: dict[str, Any], **changed: Any) -> Case:
    """The one case of a file with these steps."""
    text = yaml.safe_dump([{**RIGHT, "steps": list(steps), **changed}])
    (case,) = load.load(text, "test.yaml")
    return case


def test_the_scenarios_of_the_package_name_rules_and_capabilities_that_there_are() -> None:
    cases = load.load_all()
    assert len({case.name for case in cases}) == len(cases) > 60
    for case in cases:
        assert set(case.rules) <= set(rules()), case.name
        assert set(case.capabilities) <= CLAIMED, case.name
    assert set(capabilities()) - {name for case in cases for name in case.capabilities} <= {
        *("cluster", "jobs", "job_worker", "job_chains", "job_schedules")
    }


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"speed": 1}, "speed"),
        ({"rules": ["LQ-ADD"]}, "rules/0"),
        ({"steps": [{**ADD, "retries": 3}]}, "steps/0"),
        ({"steps": [{"sleep": 1}]}, "steps/0"),
        ({"steps": [{**ADD, "error": {"definite": True}}]}, "steps/0"),
        ({"steps": [{"keys": {"redy": []}}]}, "steps/0"),
        ({"steps": [{"forge": {"dedline": {"a": 1}}}]}, "steps/0"),
        ({"steps": [{"call": "p.add", "args": {}}]}, "asserts nothing"),
        ({"steps": [ADD, {**ADD, "call": "q.add"}]}, "no actor q"),
        ({"actors": {"p": "client", "w": "client"}}, "actor w does nothing"),
        ({"steps": [{**ADD, "queue": "r"}]}, "no queue r"),
        ({"steps": [{**ADD, "ok": ["$t"]}]}, r"nothing saved \$t"),
        ({"steps": [ADD, {"await": "w", "ok": []}]}, "nothing is named w"),
        ({"steps": [ADD, {"unchanged": "w"}]}, "nothing is named w"),
        ({"steps": [ADD, {"stop": "p", "command": "add", "when": "before"}]}, "needs a name"),
        ({"steps": [ADD, {"accept": "p"}]}, "nothing is named p"),
        ({"steps": [ADD, {"refuse": "w", "command": "add", "error": "LOADING now"}]}, "no actor w"),
        ({"steps": [ADD, {"sent": "p", "command": "add", "since": "m", "count": 0}]}, "nothing is named m"),
    ],
)
def test_a_scenario_that_is_not_right_is_refused_with_its_place(
    changed: dict[str, Any], expected: str
) -> None:
    with pytest.raises(CaseFileError, match=expected):
        load.load(yaml.safe_dump([{**RIGHT, **changed}]), "test.yaml")


def test_text_that_is_no_yaml_is_refused() -> None:
    with pytest.raises(CaseFileError, match=r"test\.yaml"):
        load.load("- {", "test.yaml")


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ([{"$save": "x"}, {"$above": "$x"}], ["5", "6"]),
        ({"$from": "$five", "plus": 2}, "7"),
        ({"$unordered": [1, 2]}, [2, 1]),
        ({"$any": True}, None),
        ({"$contains": "no"}, "Error: no"),
        ("$five", "5"),
        ([], []),
    ],
)
def test_what_matches(expected: Any, got: Any) -> None:
    values.match(expected, got, {"five": "5"})


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ({"a": 1}, {"b": 1}),
        ({"$contains": "no"}, "Error: yes"),
        ({"a": 1}, []),
        ([1], [1, 2]),
        ([1], 1),
        (True, 1),
        (0, False),
        ({"$above": "$five"}, "5"),
        ({"$from": "$five", "plus": 2}, "6"),
        ({"$unordered": [1, 2]}, [2, 2]),
        ("$five", "6"),
    ],
)
def test_what_does_not_match(expected: Any, got: Any) -> None:
    with pytest.raises(values.MismatchError):
        values.match(expected, got, {"five": "5"})


def test_text_is_made_bytes_where_messages_have_bytes() -> None:
    written = {
        "items": [{"id": "a", "data": {"$repeat": ["xy", 2]}, "headers": {"h": "v"}}],
        "state": "ready",
    }
    expected = {
        "items": [{"id": b64(b"a"), "data": b64(b"xyxy"), "headers": {"h": b64(b"v")}}],
        "state": "ready",
    }
    assert values.plain(written) == expected
    assert values.plain({"ids": {"$numbers": 2}}) == {"ids": [b64(b"0"), b64(b"1")]}
    assert values.plain({"$times": ["x", 2, "y", 1]}) == ["x", "x", "y"]


@pytest.fixture(scope="module")
def pool() -> Iterator[AdapterPool]:
    with open_server() as server, AdapterPool(server, ADAPTER) as made:
        yield made


@pytest.fixture
def context(pool: AdapterPool) -> Context:
    return Context(pool.server, ADAPTER, CLAIMED, pool=pool)


RACE = {"call": "p.add", "args": ADD["args"], "first": {"ok": ["added"]}, "second": {"ok": ["added"]}}

INSPECTING = {**RACE, "first": {"ok": ["added"], "keys": {"leased": ["a"]}}}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([{**ADD, "ok": ["exists"]}], "expected 'exists'"),
        ([{**ADD, "error": {"definite": True}}], "answered ok"),
        ([ADD, {"keys": {"ready": ["b"]}}], "the queue.ready"),
        ([{"remember": "m"}, ADD, {"unchanged": "m"}], "changed"),
        ([ADD, {"damage": [["DEL", "ready"]]}, {"sound": True}], "broke the invariants"),
        ([ADD, {"forge": {"deadline": {"a": 1}}}], "a is not in leased"),
        ([ADD, {"sent": "p", "command": "add", "at_most": 0}], "sent add"),
        ([ADD, {"time": "t"}, {"not_before": "$t", "plus_ms": 3_600_000}], "too early"),
        ([{"race": [RACE, {**RACE, "call": "w.add"}]}], "expected 'added'"),
        ([{"race": [INSPECTING, {**INSPECTING, "call": "w.add"}]}], "the queue.leased"),
        ([{"stop": "p", "command": "add", "when": "after", "do": "drop"}, ADD], "answered error"),
        (
            [{"start": "p.lease", "args": LEASE["args"], "as": "w"}, {"await": "w", "cancelled": True}],
            "expected cancelled",
        ),
    ],
)
def test_what_fails_a_scenario(context: Context, steps: list[dict[str, Any]], expected: str) -> None:
    if "ok" in steps[0] and "error" in steps[0]:
        steps[0] = {key: value for key, value in steps[0].items() if key != "ok"}
    actors = {"p": "client"} | ({"w": "client"} if "race" in steps[0] else {})
    verdict = run_case(scenario(*steps, {"keys": {"dead": []}}, actors=actors), context)
    assert verdict.outcome is Outcome.FAIL
    assert re.search(expected, verdict.message), verdict.message


@pytest.mark.slow
def test_what_is_awaited_in_vain_fails_and_says_so(context: Context) -> None:
    steps = [
        {"start": "p.lease", "args": {"duration_ms": 30000, "wait_ms": None}, "as": "w"},
        {"await": "w", "ok": {}},
    ]
    verdict = run_case(scenario(*steps), impatient(context))
    assert verdict.outcome is Outcome.FAIL
    assert "had no answer" in verdict.message
    keys = run_case(scenario(ADD, {"eventually": {"dead": ["a"]}}), impatient(context))
    assert (keys.outcome, bool(keys.difference)) == (Outcome.FAIL, True)


def impatient(context: Context) -> Context:
    """Return a context that waits a second for what never comes."""
    return Context(context.server, ADAPTER, CLAIMED, patience=1.0, pool=context.pool)


def test_a_call_without_an_answer_is_unknown_and_no_failure(context: Context) -> None:
    wait = {"call": "p.lease", "args": {"duration_ms": 30000, "wait_ms": None}, "ok": {}}
    assert run_case(scenario(wait), impatient(context)).outcome is Outcome.UNKNOWN


def test_a_capability_that_is_not_declared_skips(context: Context) -> None:
    plain = Context(context.server, ADAPTER, frozenset({"core"}), pool=context.pool)
    verdict = run_case(scenario(ADD, capabilities=["core", "look"]), plain)
    assert (verdict.outcome, "look" in verdict.message) == (Outcome.SKIP, True)


def test_an_actor_that_is_done_works_for_the_next_case(context: Context) -> None:
    def pid(verdict: Verdict) -> set[str]:
        return {line for line in verdict.transcript if '"op":"open"' in line}

    first, second = (run_case(scenario(ADD), context) for _ in range(2))
    assert first.outcome is second.outcome is Outcome.PASS
    assert pid(first)
    assert pid(second)
    assert pid(first) != pid(second), "each case has separate queues"


def test_refused_commands_get_the_error_until_they_are_accepted(context: Context) -> None:
    refused = {"refuse": "p", "command": "SCRIPT", "error": "LOADING Redis is loading the dataset in memory"}
    failed = {"error": {"code": None, "definite": True}}
    steps = [
        ADD,
        refused,
        {"mark": "refused", "of": "p"},
        {**{key: ADD[key] for key in ("call", "args")}, **failed},
        {**LEASE, **failed},
        {"sent": "p", "command": "SCRIPT", "since": "refused", "count": 2},
        {"keys": {"ready": ["a"], "leased": []}},
        {"accept": "p"},
        {**LEASE, "ok": {"leases": [{"id": "a"}]}},
    ]
    assert run_case(scenario(*steps), context).outcome is Outcome.PASS
    verdict = run_case(scenario(ADD, refused, LEASE), context)
    assert (verdict.outcome, "answered error" in verdict.message) == (Outcome.FAIL, True)
