"""Hold the specification against the scripts, the tests and the conformance cases.

    python python/tests/support/spec_rules.py

prints which tests and cases cite each rule of `spec/`, then every contradiction, and exits 1 if there is one.

A rule is a line ``**LQ-AREA-n** One sentence with MUST.`` A citation is a rule's id anywhere in a test or a case; ids in
comments of the code count as references, which must exist but prove nothing.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[3]
CITING = ("python/tests", "conformance-tests")
REFERRING = ("python/leaseq", "cleaner", "lua", "docs", "spec", "benchmarks", "typescript", "go", "rust")
NOT_CITING = {"spec_rules.py", "test_spec_rules.py"}
SUFFIXES = {".py", ".md", ".yaml", ".yml", ".json", ".jsonl", ".lua", ".ts", ".go", ".rs"}
GENERATED = {"__pycache__", "node_modules", "target", "dist", "_build", ".venv"}

RULE = re.compile(r"^\*\*(LQ-[A-Z]+-\d+)\*\* (.+)$")
ID = re.compile(r"\bLQ-[A-Z]+-\d+\b")
CODE_SPAN = re.compile(r"`[^`]*`")
CODE = re.compile(r"\bLEASEQ_[A-Z_]*[A-Z]\b")

STATES = ("absent", "delayed", "ready", "leased", "expired", "dead")
TOKENS = ("current", "superseded", "older item")
VARIANTS = (
    "complete only_current",
    "complete_with only_current",
    "release with delay",
    "release uncounted",
    "release with error",
    "release at limit",
    "release with dead",
)
EVERY_OPERATION = {"LEASEQ_BAD_ARGUMENT", "LEASEQ_WRONG_TYPE"}
"""The errors that the introduction of page 04 says once for all operations."""
OF_CLIENTS = {"LEASEQ_FULL"}
"""Codes that clients give to answers and that no script raises."""


@dataclass(frozen=True)
class Rule:
    """A rule and where it stands."""

    id: str
    text: str
    place: str


@dataclass(frozen=True)
class Tree:
    """The project's files, or a copy with something broken on purpose."""

    root: Path = ROOT

    def page(self, name: str) -> str:
        """One page of the specification."""
        return (self.root / "spec" / name).read_text()

    def lines(self) -> Iterator[tuple[str, str]]:
        """Every line of the specification outside code blocks, with its place."""
        for path in sorted((self.root / "spec").glob("*.md")):
            in_code = False
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if line.startswith("```"):
                    in_code = not in_code
                elif not in_code:
                    yield f"spec/{path.name}:{number}", line

    def rules(self) -> list[Rule]:
        """All rules in the order of the pages."""
        found = ((place, RULE.match(line)) for place, line in self.lines())
        return [Rule(match[1], match[2], place) for place, match in found if match]

    def scripts(self) -> dict[str, dict[str, object]]:
        """What the manifest says of each script."""
        scripts: dict[str, dict[str, object]] = json.loads((self.root / "lua" / "manifest.json").read_text())[
            "scripts"
        ]
        return scripts

    def citations(self, folders: Iterable[str] = CITING) -> dict[str, set[str]]:
        """Which files name each id."""
        cited: dict[str, set[str]] = {}
        for folder in folders:
            for path in sorted((self.root / folder).rglob("*")):
                parts = path.relative_to(self.root).parts
                skip = path.name in NOT_CITING or path.suffix not in SUFFIXES or GENERATED & set(parts)
                if skip or not path.is_file():
                    continue
                for rule in set(ID.findall(path.read_text(errors="replace"))):
                    cited.setdefault(rule, set()).add("/".join(parts))
        return cited

    def sections(self) -> dict[str, str]:
        """The sections of page 04 by operation."""
        parts = re.split(r"^## (\w+)$", self.page("04-operations.md"), flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2], strict=True))

    def table(self) -> dict[tuple[str, str], list[str]]:
        """The cells of the state table on page 01, by operation and token."""
        cells: dict[tuple[str, str], list[str]] = {}
        inside = False
        for line in self.page("01-overview.md").splitlines():
            row = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
            if row == ["operation", "token", *STATES]:
                inside = True
            elif not row:
                inside = False
            elif inside and set(row[0]) != {"-"}:
                cells[row[0], row[1]] = row[2:]
        return cells


def uncited(tree: Tree) -> list[str]:
    """Rules that no test and no case cites."""
    cited = tree.citations()
    return [f"{rule.place}: no test or case cites {rule.id}" for rule in tree.rules() if rule.id not in cited]


def unknown(tree: Tree) -> list[str]:
    """Citations and references of rules that are not there."""
    known = {rule.id for rule in tree.rules()}
    named = tree.citations((*CITING, *REFERRING))
    return [
        f"{path}: there is no {name}" for name in sorted(named.keys() - known) for path in sorted(named[name])
    ]


def duplicates(tree: Tree) -> list[str]:
    """Ids that two rules have."""
    count = Counter(rule.id for rule in tree.rules())
    return [
        f"{rule.place}: {rule.id} is there {count[rule.id]} times"
        for rule in tree.rules()
        if count[rule.id] > 1
    ]


def malformed(tree: Tree) -> list[str]:
    """Lines with MUST that are no rule, and rules that are not one sentence with MUST."""
    found = []
    for place, line in tree.lines():
        match = RULE.match(line)
        text = CODE_SPAN.sub("", match[2] if match else line)
        if match and ("MUST" not in text or not text.endswith(".") or re.search(r"\. [A-Z]", text)):
            found.append(f"{place}: {match[1]} is not one sentence with MUST")
        elif not match and "MUST" in text:
            found.append(f"{place}: MUST outside a rule: {line.strip()}")
    return found


def error_codes(tree: Tree) -> list[str]:
    """Codes that the scripts raise and page 03 does not list, and the reverse."""
    raised = set()
    for path in (tree.root / "lua").rglob("*.lua"):
        raised |= set(CODE.findall(path.read_text()))
    listed = set(re.findall(r"^\| `(LEASEQ_\w+)` \|", tree.page("03-calls.md"), re.MULTILINE))
    named = {code for _, line in tree.lines() for code in CODE.findall(line)}
    return [
        *(
            f"spec/03-calls.md does not list {code}, which a script raises"
            for code in sorted(raised - listed)
        ),
        *(f"spec/03-calls.md lists {code}, which no script raises" for code in sorted(listed - raised)),
        *(
            f"spec names {code}, which spec/03-calls.md does not list"
            for code in sorted(named - listed - OF_CLIENTS)
        ),
    ]


def keys_of(script: dict[str, object]) -> list[str]:
    """The keys of a script in order: those of every call, then those for each queue or entry that asks for them."""
    always = [key["name"] for key in script["keys"]]  # type: ignore[attr-defined]
    more = [name for each in script["more_keys"] for name in each["keys"]]  # type: ignore[attr-defined]
    return [*always, *more]


def sections(tree: Tree) -> list[str]:
    """Operations whose section on page 04 is missing or says other keys or errors than the manifest."""
    found = []
    written = tree.sections()
    known = {key for script in tree.scripts().values() for key in keys_of(script)}
    for name, script in tree.scripts().items():
        if name not in written:
            found.append(f"spec/04-operations.md has no section on {name}")
            continue
        text = written[name]
        keys = re.search(r"\*\*Keys\*\*(.*?)(?:\*\*|\n\n)", text, re.DOTALL)
        needed = keys_of(script)
        listed_keys = [key for key in re.findall(r"`([^`]+)`", keys[1] if keys else "") if key in known]
        if listed_keys != needed:
            found.append(f"spec/04-operations.md, {name}: keys {listed_keys}, the manifest says {needed}")
        errors = re.search(r"\*\*Errors\*\*(.*?)(?:\*\*|\n\n)", text, re.DOTALL)
        codes = set(CODE.findall(errors[1])) | EVERY_OPERATION if errors else set()
        if codes != set(script["errors"]):  # type: ignore[call-overload]
            found.append(
                f"spec/04-operations.md, {name}: errors {sorted(codes)}, the manifest says {script['errors']}"
            )
    found += [
        f"spec/04-operations.md: no script is named {name}" for name in written.keys() - tree.scripts().keys()
    ]
    return found


def cells(tree: Tree) -> list[str]:
    """Cells that the state table on page 01 lacks."""
    table = tree.table()
    needed = []
    for name, script in tree.scripts().items():
        tokens = TOKENS if any(each["type"] == "token" for each in script["entry"]) else ("any",)  # type: ignore[attr-defined]
        needed += [(name, token) for token in tokens]
    needed += [(variant, token) for variant in VARIANTS for token in TOKENS]
    found = [f"spec/01-overview.md: the table has no row for {row}" for row in needed if row not in table]
    found += [
        f"spec/01-overview.md: the table has a row for {row}, which is nothing"
        for row in table
        if row not in needed
    ]
    for row, filled in table.items():
        if len(filled) != len(STATES) or not all(filled):
            found.append(f"spec/01-overview.md: the row {row} has an empty or missing cell")
    return found


CHECKS = (uncited, unknown, duplicates, malformed, error_codes, sections, cells)


def coverage(tree: Tree) -> str:
    """A line for each rule: its id, how many files cite it, and the first of them."""
    cited = tree.citations()
    lines = [f"{'rule':<16}{'files':>5}  where"]
    for rule in tree.rules():
        files = sorted(cited.get(rule.id, ()))
        more = f" and {len(files) - 2} more" if len(files) > 2 else ""
        lines.append(f"{rule.id:<16}{len(files):>5}  {', '.join(files[:2]) or '-'}{more}")
    done = sum(rule.id in cited for rule in tree.rules())
    return "\n".join([*lines, f"{done} of {len(tree.rules())} rules are cited"])


def main() -> int:
    """Print the table and what is wrong."""
    tree = Tree()
    found = [line for check in CHECKS for line in check(tree)]
    sys.stdout.write("\n".join([coverage(tree), *found]) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
