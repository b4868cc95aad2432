"""The command line of the bundler."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import bundler
from bundler.generated import generated_files
from bundler.header import load_all

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Write or check the generated files of a source tree; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="bundler", description=bundler.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a generated file is stale"
    )
    parser.add_argument(
        "--render", type=Path, metavar="DIR", help="write each script as it reaches the server"
    )
    options = parser.parse_args(arguments)
    if options.render:
        options.render.mkdir(parents=True, exist_ok=True)
        for name, script in load_all(root / "lua").items():
            (options.render / f"{name}.lua").write_text(script.source)
        return 0
    stale = {
        path: text
        for path, text in generated_files(root).items()
        if not path.exists() or path.read_text() != text
    }
    for path, text in stale.items():
        if options.check:
            print(f"stale: {path.relative_to(root)}; run make generate", file=sys.stderr)
        else:
            path.write_text(text)
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
