"""Write `spec/rules.json`: every rule of the specification, for programs. Run by `make generate`, checked by `make lint`.

    python tools/rules_json.py             write the file
    python tools/rules_json.py --check     exit 1 if the file is stale

Each rule has `id`, `page`, `binds` (script, client, worker, operator), `text`, `core` (a client of the level Core keeps it) and `cases`: the cases of the conformance suite that
name it.
"""

import json
import sys
from pathlib import Path
from typing import Final

from leaseq_conformance import registry, rules

SPEC: Final = Path(__file__).parents[1] / "spec"
FILE: Final = SPEC / "rules.json"


def content() -> str:
    """The file as it should be."""
    core = set(rules.core_rules())
    cases: dict[str, list[str]] = {}
    for case in registry.all_cases():
        for rule in case.rules:
            cases.setdefault(rule, []).append(case.name)
    found = [
        {
            "id": match["id"],
            "page": page.stem,
            "binds": match["binds"].split(", "),
            "text": match["text"],
            "core": match["id"] in core,
            "cases": sorted(cases.get(match["id"], [])),
        }
        for page in sorted(SPEC.glob("*.md"))
        for match in rules.RULE.finditer(page.read_text(encoding="utf-8"))
    ]
    return json.dumps({"rules": found}, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Run the command line."""
    if sys.argv[1:] == ["--check"]:
        if not FILE.exists() or FILE.read_text(encoding="utf-8") != content():
            sys.stderr.write("stale: spec/rules.json; run make generate\n")
            return 1
        return 0
    FILE.write_text(content(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
