"""Hold the specification against the scripts, the tests and the conformance cases.

    python python/tests/support/spec_rules.py

prints which tests and cases cite each rule of `spec/`, then every contradiction, and exits 1 if there is one.

A rule is a line ``**LQ-AREA-n** (whom it binds) One sentence with MUST.`` A citation is a rule's id anywhere in a test or a case; ids in
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
CITING = ("python/tests", "conformance-tests", "examples/tests", "benchmarks/tests")
REFERRING = ("python/leaseq", "cleaner", "lua", "docs", "spec", "benchmarks", "typescript", "go", "rust")
NOT_CITING = {"spec_rules.py", "test_spec_rules.py"}
SUFFIXES = {".py", ".md", ".yaml", ".yml", ".json", ".jsonl", ".lua", ".ts", ".go", ".rs"}
GENERATED = {"__pycache__", "node_modules", "target", "dist", "_build", ".venv"}

RULE = re.compile(r"^\*\*(LQ-[A-Z]+-\d+)\*\* \((?:script|client|worker|operator)(?:, \w+)*\) (.+)$")
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
STATES_PAGE = "conformance-tests/STATES.md"
READING = {"deep_clean", "stats", "list", "configure", "delete"}
"""Operations that the table names in one sentence: they leave each healthy item as it is."""
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
        """Return what the manifest says of each script."""
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
        """The sections on operations of pages 04 and 07, by operation."""
        pages = self.page("04-operations.md") + self.page("07-repair.md")
        parts = re.split(r"^## ([a-z_]+)$", pages, flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2], strict=True))

    def table(self) -> dict[tuple[str, str], list[str]]:
        """The cells of the state table, by operation and token; a row can name several of each."""
        cells: dict[tuple[str, str], list[str]] = {}
        inside = False
        for line in (self.root / STATES_PAGE).read_text(encoding="utf-8").splitlines():
            row = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
            if row == ["operation", "token", *STATES]:
                inside = True
            elif not row:
                inside = False
            elif inside and set(row[0]) != {"-"}:
                cells |= {
                    (name, token): row[2:] for name in row[0].split(", ") for token in row[1].split(", ")
                }
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


def sections(tree: Tree) -> list[str]:
    """Operations without a section on page 04 or 07, and sections without an operation."""
    written, known = tree.sections().keys(), tree.scripts().keys()
    return [
        *(f"spec/04-operations.md has no section on {name}" for name in sorted(known - written)),
        *(f"spec/04-operations.md: no script is named {name}" for name in sorted(written - known)),
    ]


def cells(tree: Tree) -> list[str]:
    """Cells that the state table lacks."""
    table = tree.table()
    needed = []
    for name, script in tree.scripts().items():
        if name in READING:
            continue
        tokens = TOKENS if any(each["type"] == "token" for each in script["entry"]) else ("any",)  # type: ignore[attr-defined]
        needed += [(name, token) for token in tokens]
    needed += [(variant, token) for variant in VARIANTS for token in TOKENS]
    found = [f"{STATES_PAGE}: the table has no row for {row}" for row in needed if row not in table]
    found += [
        f"{STATES_PAGE}: the table has a row for {row}, which is nothing"
        for row in table
        if row not in needed
    ]
    for row, filled in table.items():
        if len(filled) != len(STATES) or not all(filled):
            found.append(f"{STATES_PAGE}: the row {row} has an empty or missing cell")
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
