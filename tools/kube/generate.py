"""Write what is generated for Kubernetes: the boards for Grafana, and the chart's copy of the alert rules.

    python tools/kube/generate.py             write the files
    python tools/kube/generate.py --check     exit 1 if a file is stale

Run by `make generate`, checked by `make lint`. Helm reads files inside a chart only, so the chart has a copy of the rules.
"""

import json
import sys
from pathlib import Path
from typing import Final

import boards

ROOT: Final = Path(__file__).parents[2]


def contents() -> dict[Path, str]:
    """The files as they should be."""
    rules = (ROOT / "cleaner" / "alerts.yml").read_text(encoding="utf-8")
    return {
        ROOT / "deploy" / "helm" / "leaseq" / "files" / "alerts.yml": rules,
        **{
            ROOT / "deploy" / "grafana" / f"{uid}.json": json.dumps(boards.board(uid), indent=1) + "\n"
            for uid in boards.BOARDS
        },
    }


def main() -> int:
    """Run the command line."""
    if sys.argv[1:] == ["--check"]:
        wanted = contents()
        there = set((ROOT / "deploy" / "grafana").glob("*.json")) | set(wanted)
        stale = [
            file
            for file in sorted(there)
            if not file.exists() or file.read_text(encoding="utf-8") != wanted.get(file)
        ]
        for file in stale:
            sys.stderr.write(f"stale: {file.relative_to(ROOT)}; run make generate\n")
        return 1 if stale else 0
    for file, text in contents().items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
