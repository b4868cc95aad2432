"""The bundler: headers are held against the code, and generated files against their source.

Every test works on a copy of `lua/` in a temporary folder; the project's files are only read.
"""

import contextlib
import hashlib
import io
import json
import shutil
from pathlib import Path

import pytest
import redis

from bundler.__main__ import main
from leaseq import _scripts

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CLIENTS = (
    "python/leaseq/_scripts.py",
    "python/leaseq/script_errors.py",
    "python/leaseq/commands/codecs.py",
    "typescript/src/codecs.generated.ts",
    "typescript/src/script-errors.generated.ts",
    "typescript/src/scripts.generated.ts",
)
GENERATED = ("lua/manifest.json", *CLIENTS)


class Tree:
    """A copy of what the bundler reads and writes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lua = root / "lua"
        shutil.copytree(ROOT / "lua", self.lua, ignore=shutil.ignore_patterns("bundler"))
        for file in ("pyproject.toml", *CLIENTS):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, root / file)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace text that is there exactly once."""
        file = self.root / path
        text = file.read_text()
        assert text.count(old) == 1, (path, old, text.count(old))
        file.write_text(text.replace(old, new))

    def run(self, *args: str) -> tuple[int, str]:
        """Run the command line; its exit code and what it says on stderr."""
        output = io.StringIO()
        with contextlib.redirect_stderr(output):
            return main(args, self.root), output.getvalue()

    def texts(self) -> dict[str, str]:
        return {path: (self.root / path).read_text() for path in GENERATED}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def refused(tree: Tree, message: str) -> None:
    """The bundler raises an error and writes nothing."""
    before = tree.texts()
    for args in ((), ("--check",)):
        with pytest.raises(ValueError, match=message):
            tree.run(*args)
    assert tree.texts() == before


# -- headers against code

SETTLE_KEYS = (
    "local ready, state, wake, items, dead, room = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]"
)
FEWER_KEYS = "local ready, state, wake, items, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (SETTLE_KEYS, SETTLE_KEYS.replace("KEYS[1], KEYS[2]", "KEYS[2], KEYS[1]"), "out of order"),
        (SETTLE_KEYS, SETTLE_KEYS.replace("KEYS[6]", "KEYS[7]"), "out of order"),
        (SETTLE_KEYS, SETTLE_KEYS.replace("ready, state", "state, ready"), "the code binds"),
        (SETTLE_KEYS, FEWER_KEYS, "the code binds"),
        (SETTLE_KEYS, f"{SETTLE_KEYS}\nlocal more = KEYS[7]", "the code binds"),
        (SETTLE_KEYS, f"{SETTLE_KEYS}\nredis.call('GET', KEYS[1])", "only be bound to locals"),
        (
            SETTLE_KEYS,
            f"{SETTLE_KEYS}\nfor i = 1, #KEYS do redis.call('GET', KEYS[i]) end",
            "only be bound to locals",
        ),
        ("-- @key state STRING packed\n", "", "the code binds"),
        ("-- @key wake LIST\n", "-- @key wake LIST\n-- @key leased ZSET id -> time\n", "the code binds"),
        ("-- @key wake LIST\n", "-- @key wake STREAM\n", "unknown key type STREAM"),
        ("-- @key wake LIST\n", "-- @key wake\n", "unknown key type"),
        (SETTLE_KEYS, f"{SETTLE_KEYS}\nredis.call('DEL', unpack(KEYS))", "only be bound to locals"),
        (" LEASEQ_CLOCK LEASEQ_FORMAT", " LEASEQ_CLOCK", r"lacks \['LEASEQ_FORMAT'\]"),
        (" LEASEQ_CLOCK", " LEASEQ_CLOCK LEASEQ_FULL", r"never raised: \['LEASEQ_FULL'\]"),
        (
            "return (signal_worker",
            "error('LEASEQ_NEW what is this', 0) return (signal_worker",
            r"lacks \['LEASEQ_NEW'\]",
        ),
        ("-- @reply put", "-- @replies put", "unknown tag @replies"),
        ("-- @reply put boolean", "-- @reply put yes", "no argument, option or reply: put yes"),
        ("-- @reply put boolean", "-- @reply* put boolean", "no group above"),
        ("-- @reply put boolean", "-- @reply put word", "no argument, option or reply: put word"),
        ("-- @reply put boolean", "-- @option now flag\n-- @reply put boolean", "go together"),
        ("-- @reply put boolean", "-- @entry id id\n-- @reply put boolean", "has @arg entries count"),
        ("-- @complexity O(1)", "-- @complexity O(1)\n-- @author me", "unknown tag"),
        ("-- @complexity O(1)", "-- @complexity O(1)\n-- a remark", "not a header line"),
        ("-- @complexity O(1)\n", "", "lacks @complexity"),
        ("-- @complexity O(1)", "-- @complexity ", "not a header line"),
        ("--- Put back", "-- Called by", "first line"),
        ("server_time()", "server_times()", r"nothing has this name: \['server_times'\]"),
    ],
)
def test_a_header_that_the_code_contradicts_is_refused(tree: Tree, old: str, new: str, message: str) -> None:
    tree.edit("lua/settle.lua", old, new)
    refused(tree, message)


OUTCOME_KEYS = "local result_keys = {unpack(KEYS, 9)}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (OUTCOME_KEYS, "", "@keys and a line that binds the rest"),
        ("-- @keys each entry: result:<id>\n", "", "@keys and a line that binds the rest"),
        (OUTCOME_KEYS, OUTCOME_KEYS.replace("9", "8"), "only be bound to locals"),
        (OUTCOME_KEYS, OUTCOME_KEYS.replace("9", "10"), "only be bound to locals"),
        (OUTCOME_KEYS, "local result_keys = {unpack(KEYS)}", "only be bound to locals"),
        (OUTCOME_KEYS, "local result = KEYS[9]", "@keys and a line that binds the rest"),
        ("-- @key state STRING packed\n", "", "only be bound to locals|the code binds"),
    ],
)
def test_keys_behind_the_fixed_ones_are_bound_once_and_said(
    tree: Tree, old: str, new: str, message: str
) -> None:
    tree.edit("lua/outcome.lua", old, new)
    refused(tree, message)


@pytest.mark.parametrize("tag", ["key", "reply", "error", "complexity"])
def test_a_header_without_a_tag_that_every_script_needs_is_refused(tree: Tree, tag: str) -> None:
    file = tree.lua / "settle.lua"
    kept = [line for line in file.read_text().splitlines() if not line.startswith(f"-- @{tag} ")]
    file.write_text("\n".join(kept) + "\n")
    refused(tree, f"lacks @{tag}")


def test_an_error_raised_in_the_library_must_be_in_the_header(tree: Tree) -> None:
    tree.edit("lua/lib/time.lua", "error('LEASEQ_CLOCK", "error('LEASEQ_ODD")
    refused(tree, "LEASEQ_ODD")


# -- generated files


def test_a_second_run_writes_the_same(tree: Tree) -> None:
    first = tree.texts()
    assert tree.run() == (0, "")
    assert tree.texts() == first
    assert tree.run("--check") == (0, "")


@pytest.mark.parametrize("path", GENERATED)
@pytest.mark.parametrize("how", ["edited", "longer", "missing"])
def test_a_stale_file_is_named(tree: Tree, path: str, how: str) -> None:
    file = tree.root / path
    text = file.read_text()
    if how == "missing":
        file.unlink()
    else:
        file.write_text(text + "\n" if how == "longer" else text.replace("Generated", "Written", 1))
    before = file.read_text() if file.exists() else None
    code, output = tree.run("--check")
    assert code == 1
    assert path in output
    assert "make generate" in output
    assert not any(other in output for other in GENERATED if other != path)
    assert (file.read_text() if file.exists() else None) == before, "--check writes nothing"
    assert tree.run() == (0, "")
    assert file.read_text() == text


def test_a_change_of_the_library_makes_every_file_with_sources_stale(tree: Tree) -> None:
    tree.edit("lua/lib/time.lua", "local time = call('TIME')", "local time = redis.call('TIME')")
    code, output = tree.run("--check")
    assert code == 1
    sources = [path for path in GENERATED if "codecs" not in path and "errors" not in path]
    assert [path for path in GENERATED if path in output] == sources


def test_a_comment_changes_no_digest(tree: Tree) -> None:
    """Comments are not sent, so a better one does not make servers load a script again."""
    file = tree.lua / "lib/time.lua"
    file.write_text("-- more words\n\n" + file.read_text())
    assert tree.run("--check") == (0, "")


# -- what comes out


def test_the_manifest_and_the_python_module_say_the_same() -> None:
    """LQ-SCRIPT-1, LQ-CALL-1: digests, keys in order and sources."""
    manifest = json.loads((ROOT / "lua/manifest.json").read_text())
    assert manifest["protocol"] == _scripts.PROTOCOL
    assert manifest["constants"]["wait_cap_ms"] == _scripts.WAIT_CAP_MS
    assert manifest["constants"]["max_entries"] == _scripts.MAX_ENTRIES
    assert list(manifest["scripts"]) == [script.name for script in _scripts.SCRIPTS]
    assert list(manifest["scripts"]) == sorted(path.stem for path in (ROOT / "lua").glob("*.lua"))
    for script in _scripts.SCRIPTS:
        entry = manifest["scripts"][script.name]
        assert entry["source"] == script.source
        assert [key["name"] for key in entry["keys"]] == list(script.keys)
        assert bool(entry["more_keys"]) == (f"unpack(KEYS, {len(script.keys) + 1})" in script.source)
        digest = hashlib.sha1(script.source.encode(), usedforsecurity=False).hexdigest()
        assert digest == entry["sha1"] == script.sha1


def test_the_server_counts_the_same_digests(redis_client: redis.Redis) -> None:
    """LQ-SCRIPT-1: what SCRIPT LOAD answers."""
    for script in _scripts.SCRIPTS:
        assert redis_client.script_load(script.source) == script.sha1


def test_render_writes_what_reaches_the_server(tree: Tree) -> None:
    folder = tree.root / "a/new/folder"
    before = tree.texts()
    assert tree.run("--render", str(folder)) == (0, "")
    assert {path.stem: path.read_text() for path in folder.iterdir()} == {
        script.name: script.source for script in _scripts.SCRIPTS
    }
    assert tree.texts() == before


def test_no_source_has_anything_but_ascii_and_lua() -> None:
    for script in _scripts.SCRIPTS:
        assert script.source.isascii()
        assert "--#" not in script.source
        assert "\r" not in script.source
        assert script.source.splitlines()[0].startswith(f"-- leaseq {script.name}, protocol ")
