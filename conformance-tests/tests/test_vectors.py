"""The vectors hold on every server, and what breaks a script or a vector is reported."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from leaseq_conformance import registry
from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.vectors import case_file, suite
from leaseq_conformance.vectors import vector as format_
from leaseq_conformance.vectors.compare import agree
from leaseq_conformance.vectors.suite import mismatches

if TYPE_CHECKING:
    import redis

    from leaseq_conformance.vectors.vector import Vector

pytestmark = pytest.mark.timeout(600)  # thousands of calls, on a machine that may stall

CASES = {case.name: case for case in suite.cases()}
FIRST = "local call = redis.call\n"


def vector(script: str, name: str) -> Vector:
    return next(each for each in case_file.load(script) if each.name == name)


def differences(client: redis.Redis, vectors: list[Vector], source: str | None = None) -> list[str]:
    sources = {vectors[0].script: source} if source else {}
    return list(mismatches(client, vectors, sources, watched=True))


@pytest.mark.slow
def test_every_script_has_vectors_of_every_kind() -> None:
    assert set(case_file.scripts()) == set(SCRIPTS)
    assert {case.name for case in registry.all_cases(["vectors"])} == set(CASES)
    vectors = list(case_file.load_all())
    names = [(each.script, each.name) for each in vectors]
    assert len(set(names)) == len(names)
    codes = {each.reply.code for each in vectors if isinstance(each.reply, format_.Refused)}
    assert codes == {
        *("LEASEQ_BAD_ID", "LEASEQ_BAD_ARGUMENT", "LEASEQ_TOO_LARGE", "LEASEQ_CLOCK", "LEASEQ_CROSS_GROUP"),
        *("LEASEQ_FORMAT", "LEASEQ_WRONG_TYPE", "LEASEQ_OUT_OF_MEMORY", "LEASEQ_IN_USE", "SERVER"),
    }
    assert all(each.rules for each in vectors)


@pytest.mark.slow
@pytest.mark.parametrize("script", case_file.scripts())
def test_an_error_changes_nothing_and_keys_are_of_one_slot(script: str) -> None:
    for each in case_file.load(script):
        assert suite.of_one_slot(each), each.name
        if isinstance(each.reply, format_.Refused):
            assert each.then == each.given == each.then_again, each.name


def test_a_wrong_reply_is_told(redis_client: redis.Redis) -> None:
    right = vector("settle", "settle on full")
    assert differences(redis_client, [right]) == []
    assert "it answers 1, not 0" in differences(redis_client, [replace(right, reply=0)])[0]
    assert "the second time" in differences(redis_client, [replace(right, again=b"x")])[0]


def test_another_keyspace_is_told(redis_client: redis.Redis) -> None:
    right = vector("settle", "settle on full")
    less = {key: value for key, value in right.then.items() if key != "wake"}
    assert '{"wake": 1}' in differences(redis_client, [replace(right, then=less)])[0]
    more = SCRIPTS["settle"].source.replace(FIRST, FIRST + "call('SET', 'leaseq:{vectors}:queue:odd', '1')\n")
    wrong = differences(redis_client, [right], more)
    assert any("1 more keys that no call names" in expected for expected in wrong)
    assert any("leaseq:{vectors}:queue:odd is touched and was not passed" in expected for expected in wrong)


def test_a_look_at_a_key_that_was_not_passed_is_told(redis_client: redis.Redis) -> None:
    looks = SCRIPTS["settle"].source.replace(FIRST, FIRST + "call('EXISTS', 'leaseq:{vectors}:queue:kept')\n")
    assert differences(redis_client, [vector("settle", "settle on full")], looks) == [
        "settle on full: leaseq:{vectors}:queue:kept is touched and was not passed"
    ]


def test_which_cursor_goes_on_within_a_key_is_for_the_server_to_say() -> None:
    right = vector("deep_clean", "forty, items on empty, limit 1")
    assert isinstance(right.reply, list)
    assert right.reply[0] == b"1:1"
    for cursor, alike in ((b"1:34", True), (b"1:0", False), (b"2:34", False), (b"2:0", False), (b"0", False)):
        assert agree(right, [cursor, *right.reply[1:]], right.reply) is alike


def test_keys_of_two_slots_are_seen() -> None:
    right = vector("settle", "settle on full")
    keys = ["ready", "state", "wake", "items", "dead", "leaseq:{elsewhere}:queue:room"]
    assert not suite.of_one_slot(replace(right, keys=keys))


def test_a_time_to_live_is_compared_to_the_millisecond(redis_client: redis.Redis) -> None:
    right = vector("complete_with", "Each of several with a fate of its own, rich")
    assert differences(redis_client, [right]) == []
    late = SCRIPTS["complete_with"].source.replace("format('%.0f', ttl))", "format('%.0f', ttl + 1))")
    assert differences(redis_client, [right], late)
