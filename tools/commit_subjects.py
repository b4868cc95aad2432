"""Subjects of commits: at most 72 characters, a capital letter first, no full stop. Run by `make lint`.

    python tools/commit_subjects.py

Looks at the commits behind `FIRST`. Without a repository, or in a clone that does not have that commit, there is nothing to look at.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]

FIRST: Final = "5343cf8"
"""The last commit before the rule."""

MAX_LENGTH: Final = 72


def subjects() -> list[str] | None:
    """Return the subjects of new commits; None if git does not know them."""
    if not (ROOT / ".git").exists():
        return None
    argv = ["git", "-C", str(ROOT), "log", "--no-merges", "--format=%s", f"{FIRST}..HEAD"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else None


def fault(subject: str) -> str:
    """Return what is wrong with a subject, "" if nothing is."""
    if len(subject) > MAX_LENGTH:
        return f"it has {len(subject)} characters, and at most {MAX_LENGTH} are allowed: say the rest in the body"
    if subject[:1].islower() or subject.endswith("."):
        return "it starts with a capital letter and has no full stop"
    return ""


def main() -> int:
    """Print what is wrong; return the exit code."""
    found = subjects()
    if found is None:
        print("commit subjects: no commits to look at here")
    wrong = [(subject, fault(subject)) for subject in found or () if fault(subject)]
    for subject, why in wrong:
        print(f"{subject!r}: {why}")
    return len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())
