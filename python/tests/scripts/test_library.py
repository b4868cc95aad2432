"""The library of the scripts: a script gets what it calls, and what cannot be replaced by its body is refused."""

from pathlib import Path

import pytest

from bundler.library import Library, LinkError

CONSTANTS = "-- numbers\nlocal LIMIT = 64\nlocal FORM = '<I2'\n"
FUNCTIONS = """-- A file.

-- Takes a text. Gives a number.
local function parse(text)
  -- why
  return check(text) + LIMIT
end

-- Takes a text. Gives a number, or raises.
local function check(text)
  return tonumber(text)
end

-- Takes nothing. Gives a number.
local function unused()
  return 1
end

-- Takes a record. Gives two numbers.
--#inline
local function decode(record)
  local version, first, second = struct.unpack(FORM, record)
  if version ~= 1 then
    error('LEASEQ_FORMAT damaged', 0)
  end
  return first, second
end

-- Takes two numbers. Gives one of them.
--#inline
local function larger(a, b)
  local found = a
  if b > a then
    found = b
  end
  return found
end

-- Takes a number. Gives another.
--#inline
local function moved(number)
  return number - LIMIT
end

-- Takes a number. Gives twice as much.
--#inline
local function doubled(number)
  return number + number
end

-- Takes a key.
--#inline
local function touch(key)
  call('ZREM', key, '')
end

-- Takes a text. Gives a number.
--#inline
local function early(text)
  if text == '' then
    return 0
  end
  return 1
end
"""


def library(folder: Path, functions: str = FUNCTIONS) -> Library:
    (folder / "constants.lua").write_text(CONSTANTS)
    (folder / "functions.lua").write_text(functions)
    return Library(folder)


def linked(folder: Path, script: str) -> str:
    return "\n".join(library(folder).link(script.splitlines()))


def test_a_script_gets_the_functions_that_it_calls_and_those_that_they_call(tmp_path: Path) -> None:
    assert linked(tmp_path, "return parse(ARGV[1])") == (
        "local function check(text)\n  return tonumber(text)\nend\n"
        "local function parse(text)\n  return check(text) + 64\nend\n"
        "return parse(ARGV[1])"
    )


def test_functions_stand_behind_the_hot_path_unless_that_needs_them(tmp_path: Path) -> None:
    script = "local a = check(ARGV[1])\nif a then\n  --#functions\n  a = parse(ARGV[2])\nend"
    assert linked(tmp_path, script) == (
        "local function check(text)\n  return tonumber(text)\nend\n"
        "local a = check(ARGV[1])\n"
        "if a then\n"
        "  local function parse(text)\n    return check(text) + 64\n  end\n"
        "  a = parse(ARGV[2])\n"
        "end"
    )


def test_a_block_within_a_block_has_functions_that_the_rest_does_not_pay_for(tmp_path: Path) -> None:
    script = (
        "if KEYS[1] then\n  --#functions\n  if KEYS[2] then\n    --#functions\n    return parse(ARGV[1])\n  end\n"
        "  return check(ARGV[1])\nend\nreturn unused()"
    )
    assert linked(tmp_path, script) == (
        "local function unused()\n  return 1\nend\n"
        "if KEYS[1] then\n"
        "  local function check(text)\n    return tonumber(text)\n  end\n"
        "  if KEYS[2] then\n"
        "    local function parse(text)\n      return check(text) + 64\n    end\n"
        "    return parse(ARGV[1])\n"
        "  end\n"
        "  return check(ARGV[1])\n"
        "end\n"
        "return unused()"
    )


@pytest.mark.parametrize(
    ("script", "becomes"),
    [
        # results that are locals of the body need no second variable
        (
            "local first, second = decode(ARGV[1])",
            (
                "local first, second\n"
                "do\n"
                "  local record = ARGV[1]\n"
                "  local version\n"
                "  version, first, second = struct.unpack('<I2', record)\n"
                "  if version ~= 1 then\n"
                "    error('LEASEQ_FORMAT damaged', 0)\n"
                "  end\n"
                "end"
            ),
        ),
        # one result under another name, one left out
        (
            "local record = ARGV[1]\nlocal _, a = decode(record)",
            (
                "local record = ARGV[1]\n"
                "local a\n"
                "do\n"
                "  local version, first, second = struct.unpack('<I2', record)\n"
                "  if version ~= 1 then\n"
                "    error('LEASEQ_FORMAT damaged', 0)\n"
                "  end\n"
                "  a = second\n"
                "end"
            ),
        ),
        # a local of the body that has the name of an argument gets another
        (
            "local found = 1\nfound = larger(found, 2)",
            (
                "local found = 1\n"
                "do\n"
                "  local found_ = found\n"
                "  if 2 > found then\n"
                "    found_ = 2\n"
                "  end\n"
                "  found = found_\n"
                "end"
            ),
        ),
        # an argument that is more than a name is evaluated once
        (
            "local a = larger(tonumber(ARGV[1]), 2)",
            (
                "local a\n"
                "do\n"
                "  local a_ = tonumber(ARGV[1])\n"
                "  local found = a_\n"
                "  if 2 > a_ then\n"
                "    found = 2\n"
                "  end\n"
                "  a = found\n"
                "end"
            ),
        ),
        ("local b = 1\nlocal a = moved(b)", "local b = 1\nlocal a = b - 64"),
        # what only returns an expression may be called in one
        ("return moved(1) < 2 and moved(ARGV[1])", "return (1 - 64) < 2 and ((ARGV[1]) - 64)"),
        ("local a = moved(1) + moved(2)", "local a = (1 - 64) + (2 - 64)"),
        ("return moved(moved(1))", "return (((1 - 64)) - 64)"),
        ("if LIMIT > 1 then\n  touch('LIMIT')\nend", "if 64 > 1 then\n  call('ZREM', 'LIMIT', '')\nend"),
    ],
)
def test_a_call_is_replaced_by_the_body(tmp_path: Path, script: str, becomes: str) -> None:
    assert linked(tmp_path, script) == becomes


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("local a = larger(1, 2) + 1", "a call of larger is not a statement on one line"),
        ("local a = larger(1, 2) + larger(2, 3)", "a call of larger is not a statement on one line"),
        ("return larger(1, 2)", "a call of larger is not a statement on one line"),
        ("local a = larger(larger(1, 2), 2)", "a call of larger is not a statement on one line"),
        ("return larger", "a call of larger is not a statement on one line"),
        ("return moved(1, 2)", "takes 1 arguments"),
        ("return doubled(1 + 1)", "needs number more than once: give it a name first"),
        ("local a = moved(1, 2)", "takes 1 arguments and gives 1 results"),
        ("moved(1)", "takes 1 arguments and gives 1 results"),
        ("local a, b = moved(1)", "takes 1 arguments and gives 1 results"),
        ("local a = early('')", "returns before its end"),
        ("local a = 1\nlocal a = larger(a, 2)", "a local hides an argument of the same name"),
        ("local _ = moved(1)", "a result that is no variable, which cannot be left out"),
        ("local check = 1\nreturn check", "has the name of a local"),
        ("local call = 1\nreturn call", "has the name of a local"),
        ("return parsed(1)", r"nothing has this name: \['parsed'\]"),
        ("return MOST", r"nothing has this name: \['MOST'\]"),
    ],
)
def test_what_cannot_be_linked_is_refused(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(LinkError, match=message):
        linked(tmp_path, script)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-- Takes nothing. Gives a number.\n", "", "a comment over unused"),
        ("  return 1\nend\n\n-- Takes a record", "  return KEYS[1]\nend\n\n-- Takes a record", r"\['KEYS'\]"),
        ("  return 1\nend\n\n-- Takes a record", "  return now\nend\n\n-- Takes a record", r"\['now'\]"),
        ("  return 1\nend\n\n-- Takes a record", "  return MOST\nend\n\n-- Takes a record", "no MOST"),
        ("-- A file.", "local x = 1", "only functions and comments"),
        ("function unused()", "function check()", "another file has a function of this name"),
        ("return tonumber(text)", "local text = 1", "a local of the name of a parameter"),
        ("    return 0\n  end\n  return 1\nend\n", "    return 0\n  end\n", "early has no end"),
    ],
)
def test_a_malformed_library_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert FUNCTIONS.count(old) == 1, old
    with pytest.raises(LinkError, match=message):
        library(tmp_path, FUNCTIONS.replace(old, new))


def test_functions_that_call_each_other_are_refused(tmp_path: Path) -> None:
    functions = library(tmp_path, FUNCTIONS.replace("return tonumber(text)", "return parse(text)"))
    with pytest.raises(LinkError, match="calls itself"):
        functions.link(["return parse(ARGV[1])"])
