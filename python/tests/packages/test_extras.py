"""The messages of an import or a program that lacks an extra: what they say works in this environment."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from leaseq import extras

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'leaseq[jobs]'"),
        ("no JSON", "pip install 'leaseq[jobs]'"),
        (
            {"url": "file:///src/my%20queue", "dir_info": {"editable": True}},
            "pip install -e '/src/my queue[jobs]'",
        ),
        ({"url": "file:///src/leaseq", "dir_info": {}}, "pip install 'leaseq[jobs] @ file:///src/leaseq'"),
        (
            {"url": "file:///w/leaseq-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'leaseq[jobs] @ file:///w/leaseq-0.1.0-py3-none-any.whl'",
        ),
        (
            {"url": "https://example.org/q.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'leaseq[jobs] @ git+https://example.org/q.git@abc'",
        ),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came(
    origin: Any, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "leaseq-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: leaseq\nVersion: 0.1.0\n")
    if origin is not None:
        text = origin if isinstance(origin, str) else json.dumps(origin)
        (installed / "direct_url.json").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert extras.install_command("jobs") == command


@pytest.mark.parametrize(
    ("module", "missing", "extra"),
    [
        ("leaseq.jobs", "msgspec", "jobs"),
        ("leaseq.worker.otel", "opentelemetry", "otel"),
        ("leaseq.jobs.integrations.otel", "opentelemetry", "otel"),
        ("leaseq.jobs.integrations.sentry", "sentry_sdk", "sentry"),
        ("leaseq_cleaner:Cleaner", "prometheus_client", "cleaner"),
        ("leaseq.outbox.sqlalchemy", "sqlalchemy", "sqlalchemy"),
        ("leaseq.dashboard", "starlette", "dashboard"),
        ("leaseq.dashboard", "jinja2", "dashboard"),
    ],
)
def test_an_import_names_its_extra(module: str, missing: str, extra: str) -> None:
    package, _, name = module.partition(":")
    code = f"import sys; sys.modules[{missing!r}] = None; from {package} import {name or '__name__'}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.rstrip().rpartition("\n")[2]
    assert last.startswith(f"ModuleNotFoundError: {package} needs the extra `{extra}`")
    assert last.endswith(extras.install_command(extra))


def test_the_oldest_libraries_that_are_tested_are_those_that_the_extras_take() -> None:
    """`make pytest-oldest` installs what OLDEST_EXTRAS names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = {
        name: floor
        for extra, requirements in project.items()
        for name, floor in re.findall(r"'(?P<name>[a-z-]+)>=(?P<floor>[\d.]+)", str(requirements))
        if extra not in {"embedded", "dev", "all"}  # the server's own wheel has one version
    }
    pins = dict(re.findall(r"([a-z0-9-]+)==([\d.]+)", (ROOT / "Makefile").read_text()))
    assert {"click", "msgspec", "rich", "starlette"} <= wanted.keys()
    assert {
        name: f"{pins.get(name)}.".startswith(f"{floor}.") for name, floor in wanted.items()
    } == dict.fromkeys(wanted, True)
