"""Links in pages lead to files that are there, and to headings that are there. Run by `make lint`.

    python tools/page_links.py

Looks at every Markdown file of the project. Links to the web are not followed.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LINK: Final = re.compile(r"\]\(<?([^)\s>]+)>?\)")
CODE: Final = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The names of the headings of a page, as the forge makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ +(.*?)\s*$", text, re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return frozenset(found | set(re.findall(r'<a (?:name|id)="([^"]+)"', text)))


def wrong_links(page: Path) -> Iterator[str]:
    """Yield what is wrong with the links of a page."""
    text = CODE.sub(lambda code: re.sub(r"[^\n]", "~", code[0]), page.read_text(encoding="utf-8"))
    for link in LINK.finditer(text):
        target, _, anchor = link[1].partition("#")
        if re.match(r"[a-z+]+:", target):
            continue
        place = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, link.start()) + 1}"
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            yield f"{place}: there is no {target}"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{place}: {target or page.name} has no heading #{anchor}"


def main() -> int:
    """Name what is wrong; 1 if there is something."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    pages = [ROOT / name for name in listed.stdout.splitlines()] or sorted(ROOT.glob("*.md"))
    wrong = [line for page in pages if page.exists() for line in wrong_links(page)]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
