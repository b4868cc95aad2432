"""Mechanical mutants: how a source is cut, which edits are made of it, and how many have to be killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import servers

from selftest.mutation import run as run_module
from selftest.mutation.operators import bounded, edits, tokens
from selftest.mutation.run import SOURCES, Killer, judge, judged, killer_on, programs

if TYPE_CHECKING:
    from pathlib import Path

    import redis

pytestmark = pytest.mark.timeout(600)  # a machine may stall


def made(source: str) -> list[tuple[str, int]]:
    return [(edit.becomes, edit.nth) for edit in edits(source)]


def test_a_source_is_cut_into_tokens() -> None:
    found = tokens("if a ~= 'b\\'c' then -- ends\n  x[1] = #y .. '' end")
    assert [token.text for token in found] == [
        *("if", "a", "~=", r"'b\'c'", "then", "x", "[", "1", "]", "=", "#", "y", "..", "''", "end"),
    ]
    assert all(token.kind != "comment" for token in found)


def test_what_is_no_lua_is_refused() -> None:
    with pytest.raises(ValueError, match="no token of Lua"):
        tokens("local a = `b`")


@pytest.mark.parametrize("name", SOURCES)
def test_every_script_is_cut_and_nothing_is_left_over(name: str) -> None:
    source = SOURCES[name]
    pieces = [token.text for token in tokens(source)]
    without = "\n".join(line.partition("-- ")[0] for line in source.splitlines())
    assert "".join("".join(pieces).split()) == "".join(without.split())


def test_a_comparison_a_number_and_a_condition_are_edited() -> None:
    becomes = {text for text, _ in made("if a < 5 then\n  b = c + 1\nend")}
    assert becomes == {
        *("if a <= 5 then", "if a < 6 then", "if a < 4 then", "if not (a < 5) then"),
        *("b = c - 1", "b = c + 2", "b = c + 0", ""),
    }


def test_a_call_is_dropped_and_keys_are_swapped() -> None:
    assert ("", 1) in made("call('ZREM', ready, '')")
    assert ("call('ZREM', ready, '~')", 1) not in made("call('ZREM', ready, '')")
    swapped = {text for text, _ in made("local a, b = KEYS[1], KEYS[2]")}
    assert swapped == {
        f"local a, b = KEYS[{one}], KEYS[{two}]" for one, two in ((0, 2), (2, 2), (1, 1), (1, 3))
    }


def test_the_code_of_an_error_is_edited_and_its_text_is_not() -> None:
    becomes = {text for text, _ in made("error('LEASEQ_BAD_ID an id is 1..256 bytes', 0)")}
    assert becomes == {
        *(
            "error('XLEASEQ_BAD_ID an id is 1..256 bytes', 0)",
            "error('LEASEQ_BAD_ID an id is 1..256 bytes', 1)",
            "",
        ),
    }


def test_lines_that_read_alike_are_told_apart() -> None:
    drops = [edit for edit in edits("call(a)\ncall(a)\n") if not edit.becomes]
    assert [edit.nth for edit in drops] == [1, 2]
    assert drops[1].apply("call(a)\ncall(a)\n") == "call(a)\n\n"


def test_an_endless_loop_ends() -> None:
    text = bounded("while true do\n  x = 1\nend")
    assert text.startswith("local turns = 0")
    assert "while true do turns = turns + 1 if turns > " in text


def test_a_share_of_the_mutants_of_each_script_has_to_be_killed() -> None:
    (edit, *_) = edits("call(a)")
    killed, lived = ("add", edit, True), ("add", edit, False)
    score = judge([killed] * run_module.THRESHOLD + [lived] * (100 - run_module.THRESHOLD))
    assert score.good
    assert score.share("add") == run_module.THRESHOLD
    less = judge([killed, lived, ("lease", edit, True)])
    assert less.below == ["add"]
    assert less.survivors == [("add", edit)]
    assert not less.good


def test_a_script_of_two_ways_is_judged_on_an_older_server_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LEASEQ_SERVERS_DIR", str(tmp_path))
    assert programs("settle") == [None]
    with pytest.raises(SystemExit, match="make servers"):
        programs("deep_clean")
    older = tmp_path / "bin" / run_module.OLDER["deep_clean"]
    older.parent.mkdir()
    older.touch()
    assert programs("deep_clean") == [None, str(older)]


@pytest.mark.slow
def test_what_no_newer_server_runs_is_killed_on_an_older_one() -> None:
    source = SOURCES["deep_clean"]
    moves = "page[2][i] = page[2][2 * i - 1]"
    assert source.count(moves) == 1
    program = str(servers.find_program(run_module.OLDER["deep_clean"]))
    with killer_on(None, "deep_clean") as newer, killer_on(program, "deep_clean") as older:
        mutant = source.replace(moves, "")
        assert newer.kills(mutant) is False
        assert judged([newer, older], mutant) is True
        assert judged([newer, older], source) is False
        assert judged([newer, older], source.replace("local call", "local local")) is None


def test_vectors_kill_a_mutant_and_leave_the_script_alone(redis_client: redis.Redis) -> None:
    killer = Killer(redis_client, "settle")
    source = SOURCES["settle"]
    assert killer.kills(source) is False
    assert killer.kills(source.replace("flags % 2 == 1", "flags % 2 == 0")) is True
    assert killer.kills(source.replace("local call", "local local")) is None
    first = "local call = redis.call\n"
    endless = source.replace(first, first + "local at = 1\nwhile true do\n  at = at + 0\nend\n")
    assert killer.kills(endless) is True
    killer.close()
