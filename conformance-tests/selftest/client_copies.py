"""Clients with a seeded bug: copies of the clients of this source tree, edited, and the adapters that run them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from selftest.seeded_bug import SeededBugError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

    from selftest.seeded_bug import SeededBug

ROOT: Final = Path(__file__).resolve().parents[2]
PYTHON: Final = ROOT / "python"
TYPESCRIPT: Final = ROOT / "typescript"
GO: Final = ROOT / "go"
RUST: Final = ROOT / "rust"
SOURCES: Final = {
    "python": PYTHON / "leaseq",
    "tests": PYTHON / "leaseq",
    "typescript": TYPESCRIPT / "src",
    "go": GO,
    "rust": RUST / "src",
}
"""The folders that the files of a bug are below, by its part."""
PROGRAMS: Final = {
    "python": "conformance_adapter.sync_client",
    "asyncio": "conformance_adapter.asyncio_client",
}
"""The adapters of the Python client, as modules."""
SCRIPTS_MODULE: Final = "_scripts.py"
OTHER_SCRIPTS: Final = """
for _name, _sha1, _source in {sources!r}:
    globals()[_name.upper()] = globals()[_name.upper()]._replace(sha1=_sha1, source=_source)
SCRIPTS = tuple(globals()[_script.name.upper()] for _script in SCRIPTS)
"""
"""At the end of the module with the scripts: a client that sends others."""

Adapter = tuple[str, ...]
"""A command."""


class NoNodeError(Exception):
    """There is no Node, or the TypeScript client's packages are not installed."""


class ClientCopies:
    """Makes copies in a temporary folder, which goes at the end."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="leaseq-selftest-")
        self._folder = Path(self._temporary.name)
        self._node: str | None = None
        self._has_rust = False

    def right(self, adapter: str) -> Adapter:
        """Return the command of an adapter of a client without bugs: python, asyncio or typescript.

        Raises:
            NoNodeError: it is for Node, and there is none.
        """
        if adapter == "typescript":
            return (self._with_node(), str(self._folder / "right" / "dist" / "adapter" / "main.js"))
        return (sys.executable, "-m", PROGRAMS[adapter])

    def buggy(self, bugs: Iterable[SeededBug]) -> Iterator[tuple[SeededBug, Adapter]]:
        """Yield bugs and the commands of the adapters of clients with them, each as soon as it is made.

        A bug of scripts is one of the Python client here, which sends them.

        Raises:
            SeededBugError: an edit does not fit, what comes out is not of its language, or there is no Go or no cargo.
            NoNodeError: one is for Node, and there is none.
        """
        parts: dict[str, list[SeededBug]] = {}
        for bug in bugs:
            parts.setdefault(bug.part, []).append(bug)
        of_typescript, of_rust = parts.pop("typescript", []), parts.pop("rust", [])
        # cargo takes longest and is beside all else; Python's formatter and Go are programs too
        with ThreadPoolExecutor(1) as cargo, ThreadPoolExecutor(os.cpu_count()) as programs:
            pending = {cargo.submit(self._rust, bug): bug for bug in of_rust}
            for bug in (bug for part in parts.values() for bug in part):
                pending[programs.submit(self._go if bug.part == "go" else self._python, bug)] = bug
            try:
                if of_typescript:
                    yield from self._typescript(of_typescript)
                for future in as_completed(pending):
                    yield pending[future], future.result()
            finally:
                for future in pending:
                    future.cancel()

    def _python(self, bug: SeededBug) -> Adapter:
        # no bytecode: what is not edited is linked, and its own is there
        path = os.pathsep.join(filter(None, (str(self.python_copy(bug)), os.environ.get("PYTHONPATH"))))
        settings = (f"PYTHONPATH={path}", "PYTHONDONTWRITEBYTECODE=1")
        return ("/usr/bin/env", *settings, sys.executable, "-m", self.program(bug))

    @staticmethod
    def program(bug: SeededBug) -> str:
        """Return the module of the Python adapter that a bug is run with."""
        return PROGRAMS[bug.adapter or "python"]

    def python_copy(self, bug: SeededBug) -> Path:
        """Make a copy of the Python package with a bug, and return the folder to find it in.

        Raises:
            SeededBugError: an edit does not fit, or what comes out is no Python.
        """
        copy = self._folder / bug.name
        edited = {SCRIPTS_MODULE} if bug.part == "scripts" else {*bug.files, *map(_generated, bug.files)}
        _link(PYTHON / "leaseq", copy / "leaseq", {Path(file) for file in edited})
        if bug.part == "scripts":
            text = (PYTHON / "leaseq" / SCRIPTS_MODULE).read_text()
            sources = [(name, _sha1(source), source) for name, source in bug.sources().items()]
            (copy / "leaseq" / SCRIPTS_MODULE).write_text(text + OTHER_SCRIPTS.format(sources=sources))
        else:
            _edit_python(bug, copy / "leaseq")
        return copy

    def _go(self, bug: SeededBug) -> Adapter:
        """Build the adapter with other files in the place of those that are edited: all else is in Go's cache."""
        copy = self._folder / bug.name
        replaced = {}
        for file in bug.files:
            target = copy / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(bug.edited(file, (GO / file).read_text()))
            replaced[str(GO / file)] = str(target)
        overlay = copy / "overlay.json"
        overlay.write_text(json.dumps({"Replace": replaced}))
        program = copy / "adapter"
        build = [
            "go",
            "build",
            "-overlay",
            str(overlay),
            "-ldflags=-s -w",
            "-o",
            str(program),
            "./internal/adapter",
        ]
        done = subprocess.run(
            [str(ROOT / "tools" / "go.sh"), *build], capture_output=True, text=True, check=False, cwd=GO
        )
        if done.returncode != 0:
            raise SeededBugError(f"{bug.name}: Go says: {done.stderr.strip()[:2000]}")
        return (str(program),)

    def _rust(self, bug: SeededBug) -> Adapter:
        """Build the adapter in one copy, whose target folder stays: only the crate and its adapter are compiled again."""
        copy = self._rust_copy()
        for file in bug.files:
            (copy / "src" / file).write_text(bug.edited(file, (RUST / "src" / file).read_text()))
        _run_cargo(bug.name, copy)
        program = self._folder / bug.name
        shutil.copy(copy / "target" / "debug" / "leaseq-adapter", program)
        for file in bug.files:
            (copy / "src" / file).write_text((RUST / "src" / file).read_text())
        return (str(program),)

    def _rust_copy(self) -> Path:
        copy = RUST / "target" / "seeded"
        if not self._has_rust:
            copy.mkdir(parents=True, exist_ok=True)
            for folder in ("src", "adapter", "examples"):
                shutil.copytree(RUST / folder, copy / folder, dirs_exist_ok=True)
            for file in ("Cargo.toml", "Cargo.lock", "README.md"):
                shutil.copy(RUST / file, copy)
            self._has_rust = True
        return copy

    def _typescript(self, bugs: list[SeededBug]) -> Iterator[tuple[SeededBug, Adapter]]:
        node, right = self._with_node(), self._folder / "right"
        sources = self._folder / "sources"
        for bug in bugs:
            for file in bug.files:
                text = bug.edited(file, (TYPESCRIPT / "src" / file).read_text())
                target = sources / bug.name / "src" / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
        # one run of the compiler for all, since it takes longer to start than to compile
        self._compile(self._folder / "compiled", sources, list(sources.rglob("*.ts")))
        for bug in bugs:
            copy = self._folder / bug.name
            shutil.copytree(right, copy, symlinks=True)
            shutil.copytree(self._folder / "compiled" / bug.name, copy / "dist", dirs_exist_ok=True)
            yield bug, (node, str(copy / "dist/adapter/main.js"))

    def _with_node(self) -> str:
        """Compile the TypeScript client as it is, once, and return the program of Node."""
        if self._node is None:
            if not (TYPESCRIPT / "node_modules").is_dir():
                raise NoNodeError("typescript/node_modules is missing: run `make typescript`")
            command = [str(ROOT / "tools" / "node.sh"), "node", "-p", "process.execPath"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise NoNodeError(done.stderr.strip())
            self._node = done.stdout.strip()
            right = self._folder / "right"
            files = [file for folder in ("src", "adapter") for file in (TYPESCRIPT / folder).rglob("*.ts")]
            self._compile(right / "dist", TYPESCRIPT, files)
            shutil.copy(TYPESCRIPT / "package.json", right)
            (right / "node_modules").symlink_to(TYPESCRIPT / "node_modules")
        return self._node

    def _compile(self, out: Path, root: Path, files: list[Path]) -> None:
        """Compile files without a look at their types, which a bug need not get right."""
        assert self._node is not None
        options = ["--ignoreConfig", "--noCheck", "--noResolve", "--target", "es2023", "--module", "nodenext"]
        compiler = TYPESCRIPT / "node_modules" / "typescript" / "bin" / "tsc"
        command = [
            self._node,
            str(compiler),
            *options,
            "--rootDir",
            str(root),
            "--outDir",
            str(out),
            *map(str, files),
        ]
        # ES modules, as package.json beside them would say
        root_package = root / "package.json"
        if not root_package.exists():
            shutil.copy(TYPESCRIPT / "package.json", root_package)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SeededBugError(f"the compiler of TypeScript says: {done.stdout.strip()[:2000]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._temporary.cleanup()


def _run_cargo(name: str, folder: Path) -> None:
    cargo = shutil.which("cargo") or str(Path.home() / ".cargo" / "bin" / "cargo")
    command = [cargo, "build", "--locked", "--quiet", "--package", "leaseq-adapter"]
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(folder / "target"),
        "CARGO_PROFILE_DEV_DEBUG": "false",  # half of the time of the linker
        "RUSTFLAGS": "-Awarnings",
    }
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=folder, env=environment
        )
    except FileNotFoundError as error:
        raise SeededBugError("there is no cargo: install Rust with rustup") from error
    if done.returncode != 0:
        raise SeededBugError(f"{name}: cargo says: {done.stderr.strip()[:2000]}")


def _sha1(source: str) -> str:
    return hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()


def _generated(file: str) -> str:
    """The file for threads that is generated from one for asyncio; of another file, itself."""
    if "_aio/" not in file or _unasync_name(file) not in _unasync().FILES:
        return file
    return file.replace("_aio/", "_sync/")


def _unasync_name(file: str) -> str:
    """As `tools/unasync.py` names a file: worker/run.py for worker/_aio/worker_loop.py."""
    return file.replace("_aio/", "", 1)


def _unasync() -> Any:
    """The program that generates the half for threads."""
    specification = importlib.util.spec_from_file_location("unasync", ROOT / "tools/unasync.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _link(source: Path, target: Path, edited: set[Path]) -> None:
    """Link all of a package into a new folder but the files that are edited, and what was compiled from them."""
    target.mkdir(parents=True)
    inside = {path.parts[0]: path for path in edited}
    for entry in source.iterdir():
        if entry.name == "__pycache__":
            (target / entry.name).mkdir()
            stems = {path.stem for path in edited}
            for compiled in entry.iterdir():
                if compiled.name.partition(".")[0] not in stems:
                    (target / entry.name / compiled.name).symlink_to(compiled)
        elif entry.name not in inside:
            (target / entry.name).symlink_to(entry)
        elif entry.is_dir():
            below = {Path(*path.parts[1:]) for path in edited if path.parts[0] == entry.name}
            _link(entry, target / entry.name, below)


def _edit_python(bug: SeededBug, package: Path) -> None:
    unasync = _unasync()
    unasync.PACKAGE = package
    for file in bug.files:
        text = bug.edited(file, (PYTHON / "leaseq" / file).read_text())
        try:
            compile(text, file, "exec")
        except SyntaxError as error:
            raise SeededBugError(f"{bug.name}: {file} is no longer Python: {error}") from error
        (package / file).write_text(text)
        if _generated(file) != file:
            generated = unasync.generate(_unasync_name(file), set())
            (package / _generated(file)).write_text(generated)
