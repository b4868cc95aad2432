"""Code blocks of README.md and docs/: which there are, and what they do when run as they stand."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

import click

from leaseq.cli.program import program
from leaseq_cleaner.command import program as cleaner_program
from leaseq_conformance.cli import program as conformance_program

ROOT = Path(__file__).resolve().parents[3]
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

COMPILER = ROOT / "typescript" / "node_modules" / "typescript" / "bin" / "tsc"
TSC = ("--ignoreConfig", "--strict", "--target", "es2023", "--module", "nodenext", "--types", "node")


@dataclass(frozen=True)
class Block:
    """A fenced block; `output` is the ```output block right after it."""

    page: Path
    line: int
    kind: str
    text: str
    output: str | None

    @property
    def file(self) -> str:
        """The file that a block of Python is to be, by its first line; later blocks of the page can import it. Or ""."""
        named = re.match(r"# (\w+\.py)\n", self.text)
        return named[1] if named and self.kind == "python" else ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    fences = list(_FENCE.finditer(text))
    found = []
    for fence, after in zip(fences, [*fences[1:], None], strict=False):
        output = None
        if after is not None and after[1] == "output" and not text[fence.end() : after.start()].strip():
            output = after[2]
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(page, line, fence[1].strip(), fence[2], output))
    return found


def run_python(block: Block, folder: Path) -> None:
    """Run a block as a separate program in a folder, warnings as errors, and compare what it prints."""
    for other in blocks(block.page):
        if (name := other.file) and other.line < block.line:
            (folder / name).write_text(other.text, encoding="utf-8")
    program = folder / (block.file or "example.py")
    program.write_text(block.text, encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    done = subprocess.run(
        [sys.executable, "-W", "error", program.name],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, f"{block}\n{done.stderr}"
    assert done.stderr == "", f"{block}\n{done.stderr}"
    assert done.stdout == (block.output or ""), str(block)


def run_typescript(block: Block, url: str) -> None:
    """Compile a block strictly and run it with this server in place of localhost. It may print what it likes, but no error.

    The project is as `npm init` makes it, so its modules are CommonJS unless a file's name says otherwise.
    """
    with tempfile.TemporaryDirectory(dir=ROOT / "typescript" / "dist", prefix="example-") as folder:
        (Path(folder) / "package.json").write_text('{"type": "commonjs"}')
        (Path(folder) / "node_modules").mkdir()
        (Path(folder) / "node_modules" / "leaseq").symlink_to(ROOT / "typescript")
        program = Path(folder) / "example.mts"
        program.write_text(block.text.replace("redis://localhost", url), encoding="utf-8")
        for command in (
            ["node", str(COMPILER), *TSC, str(program)],
            ["node", str(program.with_suffix(".mjs"))],
        ):
            done = subprocess.run(
                [ROOT / "tools" / "node.sh", *command],
                cwd=ROOT / "typescript",
                capture_output=True,
                text=True,
                timeout=50,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, ""), f"{block}\n{done.stdout}{done.stderr}"


def check_shell(block: Block) -> None:
    """Check that each line of a shell block names what there is: a make target, extras of the package."""
    lines = [shlex.split(line, comments=True) for line in block.text.splitlines() if line.strip()]
    assert lines, str(block)
    for line in lines:
        match line:
            case ["make", target, *_]:
                subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)
            case ["pip", "install", package] if package.startswith(".["):
                with (ROOT / "pyproject.toml").open("rb") as file:
                    extras = tomllib.load(file)["project"]["optional-dependencies"]
                assert set(package[2:-1].split(",")) <= set(extras), str(block)
            case ["npm", "--prefix", folder, "ci", "&&", "npm", "--prefix", _, "run", script]:
                package = json.loads((ROOT / folder / "package.json").read_text(encoding="utf-8"))
                assert script in package["scripts"], str(block)
            case ["mkdir" | "redis-cli" | "helm" | "kubectl" | "docker", *_]:
                pass  # the register names the test of it
            case [script, _] if script.startswith("tools/"):
                assert (ROOT / script).exists(), str(block)
            case ["leaseq-cleaner", *words]:
                options = {option for param in cleaner_program.params for option in param.opts}
                assert {word for word in words if word.startswith("-")} <= options, str(block)
            case ["leaseq", *words]:
                _check_call(program, words, f"{block}: {shlex.join(line)}")
            case ["leaseq-conformance", *words]:
                _check_call(conformance_program, words, f"{block}: {shlex.join(line)}")
            case _:
                raise AssertionError(f"{block}: nothing checks the line {shlex.join(line)}")


def _check_call(program: click.Group, words: list[str], place: str) -> None:
    """Check that a call of the program, and what its output is piped to, names a command and options that it has."""
    name, *rest = words
    command = program.get_command(click.Context(program), name)
    assert command is not None, place
    options = {option for param in command.params for option in param.opts}
    for number, word in enumerate(rest):
        if word == "|" and rest[number + 1] == "leaseq":
            _check_call(program, rest[number + 2 :], place)
        if word in {"|", "--"}:
            return
        assert not word.startswith("-") or word in options, f"{place}: {word}"
