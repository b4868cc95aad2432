"""Write `leaseq/_sync` from `leaseq/_aio`: the same code for threads.

    python python/unasync.py            write the generated files
    python python/unasync.py --check    exit 1 when a generated file is stale, naming it

The files of the worker are in `leaseq/worker/_aio` and `_sync`. `concurrency.py`, `connection.py`, `race.py`, and the
worker's `handler_pool.py` and `background.py` are written by hand on both sides. A rule below that no file needs any more is an error.
"""

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "leaseq"
FILES = (
    "calls.py",
    "heartbeater.py",
    "lifecycle.py",
    "server_handle.py",
    "pages.py",
    "pool.py",
    "queue.py",
    "queue_admin.py",
    "multi_queue.py",
    "registry.py",
    "route.py",
    "transport.py",
    "blocking.py",
    "jobs/client.py",
    "jobs/schedules.py",
    "jobs/store.py",
    "worker/presence.py",
    "worker/side_loop.py",
    "worker/worker_loop.py",
    "worker/source.py",
    "worker/completer.py",
    "worker/heartbeater.py",
    "worker/fetcher.py",
    "worker/worker.py",
)
RULES = (
    (r"async (def|with)", r"\1"),
    (r"\bawait ", ""),
    (r"Awaitable\[(\w+)\]", r"\1"),
    (r"(import .*)Awaitable, ", r"\1"),
    (r"AsyncIterator", "Iterator"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"leaseq\.(worker\.|jobs\.)?_aio", r"leaseq.\1_sync"),
    (r"redis\.asyncio client", "redis client"),
    (r"from redis\.asyncio", "from redis"),
    (r"Tasks may share", "Threads may share"),
    (r"KeyboardInterrupt, SystemExit, cancellation", "KeyboardInterrupt, SystemExit"),
)


def home(name: str) -> tuple[Path, str]:
    """The folder that has `_aio` and `_sync`, and the file's name there."""
    *part, file = name.split("/")
    return PACKAGE.joinpath(*part), file


def generate(name: str, unused: set[str]) -> str:
    """One file for threads, formatted."""
    folder, name = home(name)
    text = (folder / "_aio" / name).read_text()
    for pattern, replacement in RULES:
        text, count = re.subn(pattern, replacement, text)
        if count:
            unused.discard(pattern)
    first, rest = text.split("\n", 1)
    text = f"# Generated from _aio/{name} by python/unasync.py: do not edit.\n{first}\n{rest}"
    target = str(folder / "_sync" / name)
    for command in (["check", "--quiet", "--select", "I", "--fix-only"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", target, "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> int:
    """Run the command line."""
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print(__doc__, file=sys.stderr)
        return 2
    unused = {pattern for pattern, _ in RULES}
    stale = []
    for name in FILES:
        folder, file = home(name)
        path = folder / "_sync" / file
        text = generate(name, unused)
        if not path.exists() or path.read_text() != text:
            stale.append(path)
            if not check:
                path.write_text(text)
    if unused:
        print(f"rules that no file needs: {sorted(unused)}", file=sys.stderr)
        return 1
    if check and stale:
        for path in stale:
            print(f"stale: {path.relative_to(PACKAGE.parent.parent)}; run make generate", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
