"""Write `leaseq/_sync` from `leaseq/_aio`: the same code for threads.

    python tools/unasync.py            write the generated files
    python tools/unasync.py --check    exit 1 when a generated file is stale, naming it

The files of the worker are in `leaseq/worker/_aio` and `_sync`. `concurrency.py`, `connection.py`, `gatherer.py`,
`handshake.py`, `race.py`, and the worker's `handler_pool.py` and `background.py` are written by hand on both sides. A rule below that no file needs is an error.
"""

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "python/leaseq"
FILES = (
    "borrower.py",
    "executor.py",
    "heartbeater.py",
    "exact_change.py",
    "lifecycle.py",
    "server_handle.py",
    "pages.py",
    "pool.py",
    "queue.py",
    "queue_admin.py",
    "multi_queue.py",
    "registry.py",
    "route.py",
    "sentinels.py",
    "survey.py",
    "topology.py",
    "pending_call.py",
    "blocking.py",
    "jobs/app.py",
    "jobs/chain.py",
    "jobs/store/chain_search.py",
    "jobs/store/client.py",
    "jobs/decorators.py",
    "jobs/function.py",
    "jobs/handle.py",
    "jobs/store/shared_waits.py",
    "jobs/schedules.py",
    "jobs/store/store.py",
    "jobs/store/watch.py",
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
    (r"Awaitable\[(list\[\w+\]|\w+)\]", r"\1"),
    (r"(import .*)Awaitable, ", r"\1"),
    (r"AsyncIterator", "Iterator"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"leaseq\.(worker\.|jobs\.|jobs\.store\.)?_aio", r"leaseq.\1_sync"),
    (r"_clients\.aio\b", "_clients.sync"),
    (r"_clients\.aclose\b", "_clients.close"),
    (r"what it opened, in this event loop and for threads", "what it opened for threads"),
    (r"redis\.asyncio client", "redis client"),
    (r"from redis\.asyncio", "from redis"),
    (r"Tasks may share", "Threads may share"),
    (r"GeneratorExit, cancellation", "GeneratorExit"),
)
THREADS_ONLY = "# threads: "
"""Before lines that the code for threads alone has, such as the property `aio` of what has a twin for asyncio."""


def home(name: str) -> tuple[Path, str]:
    """The folder that has `_aio` and `_sync`, and the file's name there."""
    *part, file = name.split("/")
    return PACKAGE.joinpath(*part), file


def generate(name: str, unused: set[str]) -> str:
    """One file for threads, formatted."""
    folder, name = home(name)
    lines = (folder / "_aio" / name).read_text().split("\n")
    text = "\n".join(converted(line, unused) for line in lines)
    first, rest = text.split("\n", 1)
    text = f"# Generated from _aio/{name} by tools/unasync.py: do not edit.\n{first}\n{rest}"
    target = str(folder / "_sync" / name)
    for command in (["check", "--quiet", "--select", "I", "--fix-only"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", target, "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def converted(line: str, unused: set[str]) -> str:
    """One line as the code for threads has it."""
    if THREADS_ONLY in line:
        return line.replace(THREADS_ONLY, "")
    for pattern, replacement in RULES:
        line, count = re.subn(pattern, replacement, line)
        if count:
            unused.discard(pattern)
    return line


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
            print(f"stale: {path.relative_to(PACKAGE.parents[1])}; run make generate", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
