"""The published wheel and sdist, built and installed as by a user."""

import json
import sys
import tarfile
import tomllib
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest
from support.distributions import build, content, run

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def metadata(wheel: Path) -> Message:
    return message_from_string(content(wheel)[f"leaseq-{PROJECT['version']}.dist-info/METADATA"].decode())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has this wheel and what it requires, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin/python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    return python


def test_the_installed_scripts_are_those_of_the_manifest(installed: Path, tmp_path: Path) -> None:
    """LQ-SCRIPT-1: every digest, from the installed text itself."""
    program = (
        "import hashlib, json, leaseq._scripts as s;"
        "print(json.dumps([s.__file__, {x.name: [x.sha1, hashlib.sha1(x.source.encode()).hexdigest(), list(x.keys)]"
        " for x in s.SCRIPTS}]))"
    )
    file, scripts = json.loads(run(installed, "-c", program, cwd=tmp_path))
    assert Path(file).is_relative_to(installed.parents[1]), "not the one of the working tree"
    manifest = json.loads((ROOT / "lua/manifest.json").read_text())["scripts"]
    assert scripts == {
        name: [script["sha1"], script["sha1"], [key["name"] for key in script["keys"]]]
        for name, script in manifest.items()
    }


def test_the_core_needs_redis_and_hiredis_alone(installed: Path, tmp_path: Path) -> None:
    """No extra is installed here, and both flavours import."""
    listed = json.loads(run(installed, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"))
    names = {each["name"].lower() for each in listed}
    assert names - {"pip", "setuptools", "wheel", "async-timeout", "typing-extensions"} == {
        "hiredis",
        "leaseq",
        "redis",
    }
    run(
        installed,
        "-W",
        "error",
        "-c",
        "import leaseq, leaseq.aio; leaseq.WorkQueue; leaseq.aio.WorkQueue",
        cwd=tmp_path,
    )
    run(installed, "-m", "pip", "check")


PACKAGES = ("python/leaseq", "cleaner/leaseq_cleaner")


def test_the_wheel_holds_its_packages_and_nothing_else(wheel: Path) -> None:
    names = set(content(wheel))
    info = f"leaseq-{PROJECT['version']}.dist-info/"
    assert {"leaseq/py.typed", "leaseq/__init__.py", "leaseq/_scripts.py", f"{info}licenses/LICENSE"} <= names
    of_packages = tuple(f"{Path(package).name}/" for package in PACKAGES)
    assert {name for name in names if not name.startswith((*of_packages, info))} == set()
    assert not [name for name in names if "__pycache__" in name or name.endswith((".lua", ".pyc"))]
    for package in PACKAGES:
        source = (ROOT / package).parent
        assert {str(path.relative_to(source)) for path in (ROOT / package).rglob("*.py")} <= names
    pages = ROOT / "python/leaseq/dashboard"
    files = {path for folder in ("static", "templates") for path in (pages / folder).iterdir()}
    assert {str(path.relative_to(ROOT / "python")) for path in files} <= names


def test_the_metadata_says_what_a_user_needs(wheel: Path) -> None:
    about = metadata(wheel)
    assert (about["Name"], about["Version"]) == ("leaseq", PROJECT["version"])
    assert about["License-Expression"] == PROJECT["license"]
    assert about["License-File"] == "LICENSE"
    assert about["Requires-Python"] == PROJECT["requires-python"]
    assert set(about.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    core = [each for each in about.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert [each.split("<")[0].split(">")[0] for each in core] == ["hiredis", "redis"]


@pytest.mark.parametrize("package", ["go", "rust", "typescript"])
def test_each_package_has_the_license(package: str) -> None:
    """A registry shows no documentation of a package without one."""
    assert (ROOT / package / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_sdist_holds_the_protocol_too(unpacked: Path) -> None:
    """A packager finds the specification, the scripts and the tests beside the client."""
    for name in (
        "LICENSE",
        "pyproject.toml",
        "conftest.py",
        "lua/manifest.json",
        "lua/bundler/library.py",
        "lua/bundler/templates/python/codecs.py.jinja",
        "lua/bundler/templates/python/values.toml",
        "lua/add.lua",
        "lua/lib/time.lua",
    ):
        assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes(), name
    specification = {path.name for path in (ROOT / "spec").glob("*.md")}
    assert specification
    assert {path.name for path in (unpacked / "spec").glob("*.md")} == specification
    assert not (unpacked / "typescript").exists(), "npm has it"
    assert not [
        path for path in unpacked.rglob("*") if path.name in {"__pycache__", ".venv", ".servers", ".git"}
    ]
    run(sys.executable, "-m", "bundler", "--check", cwd=unpacked / "lua")
    run(sys.executable, unpacked / "tools/unasync.py", "--check")


def test_the_sdist_builds_the_same_wheel(unpacked: Path, wheel: Path, tmp_path: Path) -> None:
    assert content(build("wheel", unpacked, tmp_path / "again")) == content(wheel)
