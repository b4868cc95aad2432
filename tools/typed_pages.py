"""The Python in pages for people passes `mypy --strict`. Run by `make lint`.

    python tools/typed_pages.py

Each block is a program. A block whose first line is `# NAME.py` is also a module, which later blocks of its page import.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ("README.md", "docs/*.md")
FENCE: Final = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE: Final = re.compile(r"# (\w+)\.py\n")

NOT_TYPED: Final = {
    "docs/jobs.md": ("def test_double(leaseq_jobs)",),  # a test, as people write them
}
"""Blocks that are not checked: a page, and words of each block."""

LIBRARIES: Final = ("django", "gevent")
"""Libraries of the pages that have no types."""

UNTYPED_CALLS: Final = ("redis.sentinel",)
"""Modules with types, but for some functions."""


class Program(NamedTuple):
    """A block of a page."""

    page: Path
    line: int
    text: str

    @property
    def module(self) -> str:
        """Its name: what the first line says, or its place."""
        named = FILE.match(self.text)
        return named[1] if named else f"line_{self.line}"


def programs(page: Path) -> Iterator[Program]:
    """The blocks of a page that are checked."""
    text = page.read_text(encoding="utf-8")
    skipped = NOT_TYPED.get(str(page.relative_to(ROOT)), ())
    for fence in FENCE.finditer(text):
        if not any(words in fence[1] for words in skipped):
            yield Program(page, text.count("\n", 0, fence.start()) + 2, fence[1])


def checked(found: list[Program], folder: Path, *, together: bool) -> list[str]:
    """Return what mypy says of some blocks, each line with its place in the page. Those of one page may import each other."""
    places: dict[str, Program] = {}
    for program in found:
        name = program.module if together else f"{program.page.stem.replace('-', '_')}_{program.line}"
        (folder / f"{name}.py").write_text(program.text, encoding="utf-8")
        places[f"{name}.py"] = program
    ignored = "".join(f"\n[mypy-{name}.*]\nignore_missing_imports = true\n" for name in LIBRARIES)
    (folder / "mypy.ini").write_text(
        f"[mypy]\nstrict = true\nuntyped_calls_exclude = {', '.join(UNTYPED_CALLS)}\n"
        f"mypy_path = {ROOT / 'python'}:{ROOT / 'cleaner'}\n{ignored}",
        encoding="utf-8",
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--config-file",
            "mypy.ini",
            "--cache-dir",
            ROOT / ".mypy_cache" / "pages",
            ".",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = []
    for line in done.stdout.splitlines():
        if match := re.match(r"(\w+\.py):(\d+): (?!note)(.*)", line):
            program = places[match[1]]
            lines.append(f"{program.page.relative_to(ROOT)}:{program.line + int(match[2]) - 1}: {match[3]}")
    if done.returncode and not lines:
        lines = [done.stdout + done.stderr]
    return lines


def main() -> int:
    """Name what mypy finds; 1 if there is something."""
    pages = sorted({page for pattern in PAGES for page in ROOT.glob(pattern)})
    alone: list[Program] = []
    wrong: list[str] = []
    for page in pages:
        found = list(programs(page))
        if any(FILE.match(program.text) for program in found):
            with tempfile.TemporaryDirectory() as folder:
                wrong += checked(found, Path(folder), together=True)
        else:
            alone += found
    with tempfile.TemporaryDirectory() as folder:
        wrong += checked(alone, Path(folder), together=False)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
