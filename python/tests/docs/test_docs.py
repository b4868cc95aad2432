"""docs/: builds without a warning, its examples run, and every public name has a docstring and its place in the pages."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from support.snippets import ROOT, Block, blocks, check_shell, run_python, run_typescript

import leaseq
import leaseq.aio
import leaseq.jobs
import leaseq.worker
import leaseq.worker.aio
import leaseq.worker.otel
import leaseq.worker.registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

pytestmark = pytest.mark.timeout(
    900
)  # the documentation is built once, in the time of the first test that looks at it

DOCS = ROOT / "docs"
BLOCKS = [block for page in sorted(DOCS.glob("*.md")) for block in blocks(page)]
NOT_CODE = {
    "output",
    "console",
    "sql",
    "text",
    "toml",
    "ini",
    "dockerfile",
    "yaml",
    "py",  # signatures, in the generated page
}
NO_DOCSTRING = {
    "FollowUp",
    "OutcomeState",
    "State",
    "Status",
    "Released",
    "__version__",
}  # plain values: the page describes them
REFERENCE = DOCS / "api.md"
MODULES: tuple[ModuleType, ...] = (
    leaseq,
    leaseq.aio,
    leaseq.worker,
    leaseq.worker.aio,
    leaseq.worker.registry,
    leaseq.worker.otel,
    leaseq.jobs,
)
"""Public modules, as the reference lists them."""
GUIDES = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md") if page != REFERENCE)
LIFE = (
    "delays",
    "priorities",
    "attempts",
    "expiry",
    "outcomes",
    "handoff",
    "limits",
    "cancelling",
    "headers",
)


def of(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind == kind]


def test_every_block_is_of_a_kind_that_is_known() -> None:
    assert {block.kind for block in BLOCKS} == {"python", "sh", "ts", "js", "go", "rust"} | NOT_CODE


@pytest.mark.slow
@pytest.mark.parametrize("block", of("python"), ids=str)
def test_python_runs_as_written(block: Block, tmp_path: Path) -> None:
    run_python(block, tmp_path)


@pytest.mark.typescript
@pytest.mark.parametrize("block", of("ts"), ids=str)
def test_typescript_runs_as_written(block: Block, url: str) -> None:
    run_typescript(block, url)


@pytest.mark.parametrize("block", of("js"), ids=str)
def test_programs_of_node_are_those_that_are_run(block: Block) -> None:
    """`make typescript-compat` runs each."""
    programs = (ROOT / "typescript" / "compat").glob("[!n]*/*.js")
    assert block.text in {program.read_text(encoding="utf-8") for program in programs}


def test_the_reference_of_typescript_has_every_export() -> None:
    indexes = [ROOT / "typescript" / "src" / name for name in ("index.ts", "jobs/index.ts", "otel.ts")]
    index = "".join(each.read_text(encoding="utf-8") for each in indexes)
    page = (DOCS / "typescript-api.md").read_text(encoding="utf-8")
    exported = re.findall(r"\b(\w+)(?=[,} ])", " ".join(re.findall(r"export (?:type )?(\{[^}]+\})", index)))
    names = {name for name in exported if name not in {"type", "export"}} | {"commands"}
    assert len(names) > 40
    assert [name for name in sorted(names) if not re.search(rf"\b{name}s?\b", page)] == []


@pytest.mark.parametrize("block", of("sh"), ids=str)
def test_shell_lines_name_what_there_is(block: Block) -> None:
    check_shell(block)


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    options = ["-W", "--keep-going", "-q", "-d", str(tmp_path / "doctrees"), "-c", str(DOCS)]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(ROOT), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", LIFE)
def test_each_page_about_an_item_has_an_example_and_says_what_a_user_needs(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    examples = [block for block in of("python") if block.page.stem == page]
    assert any(block.output for block in examples)
    assert "asyncio" in text
    for part in ("\n## What is guaranteed\n", "\n**Lost reply.** ", "\n**Cost.** ", "`spec/"):
        assert part in text, part


def test_what_the_pages_say_of_the_spec_is_there() -> None:
    operations = (ROOT / "spec" / "04-operations.md").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"`(spec/[^`]*)`", text):
            assert (ROOT / name).exists(), f"{page.name}: {name}"
        for sections in re.findall(
            r"`spec/04-operations.md`\]\([^)]*\),\s+sections?\s+((?:\*\w+\*[,\s]*(?:and\s+)?)+)", text
        ):
            for name in re.findall(r"\w+(?=\*)", sections):
                assert f"\n## {name}\n" in operations, f"{page.name}: {name}"


def described(reference: str) -> Iterator[str]:
    """Every Python name that the reference describes: in a heading, or in a table of attributes."""
    owner = ""
    for line in reference.splitlines():
        if line.startswith("### "):
            owner = line[4:].replace("\\", "")
            yield owner
        elif line.startswith("#### "):
            yield f"{owner}.{line.rpartition('.')[2]}"
        elif attribute := re.match(r"\| `(\w+)` \| [^|]*(?:\\\|[^|]*)*\| ", line):
            yield f"{owner}.{attribute[1]}"


NAMES = frozenset(described(REFERENCE.read_text("utf-8")))
INTERNAL = set(tomllib.loads((ROOT / "tools" / "api_page.toml").read_text("utf-8"))["internal"])


def test_the_reference_has_no_markup_of_another_language() -> None:
    text = re.sub(r"^```.*?^```$|`[^`]*`", "", REFERENCE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"::|``|:\w+:`|^ {4}\S|<(?!!--)|\w_ ", text, re.MULTILINE) == []


def public_names() -> list[str]:
    return [f"{module.__name__}.{name}" for module in MODULES for name in module.__all__]


def homes(full_name: str) -> list[str]:
    """A public name, and where else its thing is public: the reference has it in one of these places."""
    thing = find(full_name)
    return [full_name, *(other for other in public_names() if find(other) is thing)]


def find(full_name: str) -> Any:
    module, _, name = full_name.rpartition(".")
    return getattr(sys.modules[module], name)


def members(thing: Any) -> Iterator[tuple[str, Any]]:
    """The public attributes and methods that leaseq itself gives to a class, inherited ones included."""
    if not inspect.isclass(thing):
        return
    seen = set()
    for cls in thing.__mro__:
        if not cls.__module__.startswith("leaseq"):
            continue
        for name, value in vars(cls).items():
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, value


@pytest.mark.parametrize("full_name", public_names())
def test_every_public_name_is_in_the_reference(full_name: str) -> None:
    places = homes(full_name)
    assert NAMES.intersection(places)
    thing = find(full_name)
    if full_name.rpartition(".")[2] not in NO_DOCSTRING:
        assert inspect.getdoc(thing)
    bases = places
    if inspect.isclass(
        thing
    ):  # an inherited attribute may be described at the public class that it comes from
        bases += [
            f"{module.__name__}.{base.__name__}"
            for module in (leaseq, leaseq.worker)
            for base in thing.__mro__
            if base.__name__ in module.__all__
        ]
    for member, value in members(thing):
        if f"{thing.__name__}.{member}" in INTERNAL:
            continue
        assert any(f"{base}.{member}" in NAMES for base in bases), f"{full_name}.{member}"
        if callable(value) or isinstance(value, property | classmethod | staticmethod):
            assert inspect.getdoc(getattr(thing, member)), f"{full_name}.{member} has no docstring"


@pytest.mark.parametrize("cls", [leaseq.WorkQueue, leaseq.WorkQueues, leaseq.LeasedItem, leaseq.Item])
def test_every_method_is_in_a_guide_too(cls: type) -> None:
    """The reference alone does not tell what a method is for."""
    assert [name for name, _ in members(cls) if not re.search(rf"\b{name}\b", GUIDES)] == []


@pytest.mark.parametrize("module", [leaseq.errors, leaseq.results], ids=lambda module: module.__name__)
def test_every_error_and_every_answer_is_public(module: ModuleType) -> None:
    own = {
        name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__
    }
    classes = {name for name in own if inspect.isclass(getattr(module, name)) and not name.startswith("_")}
    assert classes <= set(leaseq.__all__)


def test_asyncio_has_what_threads_have() -> None:
    """Same methods, same arguments; the answers and errors are the same objects, so `leaseq.aio` need not have them."""
    for name in ("WorkQueue", "WorkQueues", "LeasedItem"):
        ours, theirs = dict(members(getattr(leaseq, name))), dict(members(getattr(leaseq.aio, name)))
        assert set(ours) == set(theirs)
        for member, thing in ours.items():
            if inspect.isfunction(thing):
                twin = inspect.signature(theirs[member]).parameters
                assert [*inspect.signature(thing).parameters] == [*twin], f"{name}.{member}"
