"""Types of jobs for a type checker: wrong arguments are errors, and a result has the type that the function returns."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.snippets import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = """
from leaseq.jobs import App, Context

app = App()

@app.job
async def add(a: int, b: int = 0) -> int: return a + b

@app.job(retries=2)
def send(ctx: Context, address: str) -> bool: return True

@app.job
def show(number: int, text: str) -> str: return text * number

@app.every(60)
@app.job
async def tick() -> None: ...

@app.cron("* * * * *")
def tock(ctx: Context) -> int: return ctx.attempt

async def main() -> None:
    right = add.enqueue(1, b=2)
    reveal_type(right.result())  # int
    reveal_type(await (await add.with_options(delay=3).aio.enqueue(1)).result())  # int
    reveal_type(app.enqueue_many([send.call("a")])[0].result())  # bool
    reveal_type(app.handle("id").result())  # Any
    add.enqueue("x")  # error
    await add.aio.enqueue(1, c=2)  # error
    add.call()  # error
    send.enqueue(3)  # error
    send.enqueue()  # error
    add.with_options(max_attempts=3)  # error
    app.job(queue=3)  # error
    chain = app.chain(add.call(1)).then(show.partial("x"))
    reveal_type(chain.enqueue().result())  # str
    reveal_type(await (await chain.then(send.partial()).aio.enqueue()).result())  # bool
    app.chain(add.call(1)).then(send.partial())  # error
    app.chain(add.call(1)).then(show.partial())  # error
    app.chain(add.call(1)).then(show.partial(3))  # error
    app.chain(add.call()).then(show.partial("x"))  # error
    tick.enqueue(1)  # error
    reveal_type(tock.enqueue().result())  # int
    app.every([60])  # error
"""


def test_what_a_type_checker_says(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file="]
    done = subprocess.run(
        [*mypy, "--cache-dir", str(ROOT / ".mypy_cache" / "jobs"), "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = re.findall(
        r"^program\.py:(\d+): (note: Revealed type is \"(.+)\"|error)", done.stdout, re.MULTILINE
    )
    found = {int(line): kind.rpartition(".")[2] if kind else "error" for line, _, kind in complaints}
    wanted = {
        number: line.partition("  # ")[2]
        for number, line in enumerate(PROGRAM.splitlines(), 1)
        if "  # " in line
    }
    assert found == wanted, done.stdout + done.stderr
