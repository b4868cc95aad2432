"""Docstrings that do not say what a function does or name the thing. Run by `make lint`.

    python tools/docstrings.py

Lists each docstring that starts with one of `STARTS`. Write "Return ...", "Send ...", or a noun. Docstrings of attributes count too.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]

FOLDERS: Final = ("benchmarks", "cleaner", "conformance-tests", "docs", "examples", "lua", "python", "tools")
"""Folders whose docstrings are read."""

STARTS: Final = re.compile(r"(?:What|How|Whether|Those|It|The same as)\b")


def wrong_docstrings(path: Path) -> Iterator[str]:
    """Yield a line for each docstring of a module that starts wrongly."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str) and STARTS.match(text.lstrip()):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {text.lstrip().splitlines()[0]}"


def main() -> int:
    """Print what is wrong; return the exit code."""
    modules = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    wrong = [line for path in modules for line in wrong_docstrings(path)]
    for line in wrong:
        print(line)
    if wrong:
        print('A docstring says what a function does ("Return ...", "Send ..."), or names the thing.')
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
