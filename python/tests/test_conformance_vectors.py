"""The vectors hold on every server, and what breaks a script or a vector is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import redis

from leaseq_conformance import suites
from leaseq_conformance.cases import Context, Outcome
from leaseq_conformance.mutants.scripts import SOURCES, load
from leaseq_conformance.server import GivenServer
from leaseq_conformance.vectors import form, suite
from leaseq_conformance.vectors.seen import agree
from leaseq_conformance.vectors.suite import found_wrong

if TYPE_CHECKING:
    from leaseq_conformance.vectors.form import Vector

pytestmark = pytest.mark.timeout(600)  # thousands of calls, on a machine that may stall

CASES = {case.name: case for case in suite.cases()}
FIRST = "local call = redis.call\n"


def vector(script: str, name: str) -> Vector:
    return next(each for each in form.load(script) if each.name == name)


def told(client: redis.Redis, vectors: list[Vector], source: str | None = None) -> list[str]:
    sources = {vectors[0].script: source} if source else {}
    return list(found_wrong(client, vectors, sources, watched=True))


@pytest.mark.parametrize("name", CASES)
def test_the_scripts_do_what_the_vectors_say(url: str, name: str) -> None:
    verdict = suite.run(CASES[name], Context(GivenServer(url)))
    assert verdict.outcome is Outcome.PASS, (verdict.message, *verdict.transcript)


def test_every_script_has_vectors_of_every_kind() -> None:
    assert set(form.scripts()) == set(SOURCES)
    assert {case.name for case in suites.all_cases(["vectors"])} == set(CASES)
    vectors = list(form.load_all())
    names = [(each.script, each.name) for each in vectors]
    assert len(set(names)) == len(names)
    codes = {each.reply.code for each in vectors if isinstance(each.reply, form.Refused)}
    assert codes == {
        *("LEASEQ_BAD_ID", "LEASEQ_BAD_ARGUMENT", "LEASEQ_TOO_LARGE", "LEASEQ_CLOCK", "LEASEQ_CROSS_GROUP"),
        *("LEASEQ_FORMAT", "LEASEQ_WRONG_TYPE", "LEASEQ_OUT_OF_MEMORY"),
    }
    assert all(each.rules for each in vectors)


@pytest.mark.parametrize("script", form.scripts())
def test_an_error_changes_nothing_and_keys_are_of_one_slot(script: str) -> None:
    for each in form.load(script):
        assert suite.of_one_slot(each), each.name
        if isinstance(each.reply, form.Refused):
            assert each.then == each.given == each.then_again, each.name


def test_a_file_is_what_its_vectors_render() -> None:
    content = (form.FOLDER / "complete_with.json").read_text()
    vectors = form.parse(content)
    queues = {each.base: each.given for each in vectors}
    again = form.parse(form.render("complete_with", queues, vectors))
    assert again == vectors


@pytest.mark.on("last")
def test_a_wrong_reply_is_told(redis_client: redis.Redis) -> None:
    right = vector("settle", "settle on full")
    assert told(redis_client, [right]) == []
    assert "it answers 1, not 0" in told(redis_client, [replace(right, reply=0)])[0]
    assert "the second time" in told(redis_client, [replace(right, again=b"x")])[0]


@pytest.mark.on("last")
def test_another_keyspace_is_told(redis_client: redis.Redis) -> None:
    right = vector("settle", "settle on full")
    less = {key: value for key, value in right.then.items() if key != "wake"}
    assert '{"wake": ["1"]}' in told(redis_client, [replace(right, then=less)])[0]
    more = SOURCES["settle"].replace(FIRST, FIRST + "call('SET', 'leaseq:{vectors}:queue:odd', '1')\n")
    wrong = told(redis_client, [right], more)
    assert any("1 more keys that no call names" in said for said in wrong)
    assert any("leaseq:{vectors}:queue:odd is touched and was not passed" in said for said in wrong)


@pytest.mark.on("last")
def test_a_look_at_a_key_that_was_not_passed_is_told(redis_client: redis.Redis) -> None:
    looks = SOURCES["settle"].replace(FIRST, FIRST + "call('EXISTS', 'leaseq:{vectors}:queue:kept')\n")
    assert told(redis_client, [vector("settle", "settle on full")], looks) == [
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


@pytest.mark.on("last")
def test_a_time_to_live_is_compared_to_the_millisecond(redis_client: redis.Redis) -> None:
    right = vector("complete_with", "keep on full")
    assert told(redis_client, [right]) == []
    late = SOURCES["complete_with"].replace("format('%.0f', ttl))", "format('%.0f', ttl + 1))")
    assert told(redis_client, [right], late)


def test_the_edits_of_the_seeded_bugs_fit_and_no_two_break_one_rule() -> None:
    mutants = load()
    assert all(mutant.source() != SOURCES[mutant.script] for mutant in mutants)
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    assert len({mutant.breaks for mutant in mutants}) == len(mutants)
    cases = {case.name: case for case in suites.all_cases(["vectors", "rights", "bounds"])}
    assert {mutant.caught_by for mutant in mutants} <= set(cases)
    assert all(mutant.breaks in cases[mutant.caught_by].rules for mutant in mutants)


@pytest.mark.on("last")
@pytest.mark.parametrize("script", form.scripts())
def test_each_seeded_bug_is_caught(url: str, script: str) -> None:
    vectors = form.load(script)
    for mutant in load():
        if mutant.caught_by == f"vectors/{script}":
            assert any(caught(url, vectors, {script: mutant.source()}, protocol) for protocol in (2, 3)), (
                mutant
            )


def caught(url: str, vectors: list[Vector], sources: dict[str, str], protocol: int) -> bool:
    with redis.Redis.from_url(url, protocol=protocol) as client:
        wrong = found_wrong(client, vectors, sources, watched=protocol == 2)
        try:
            return next(wrong, None) is not None
        finally:
            wrong.close()
