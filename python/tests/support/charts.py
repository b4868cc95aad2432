"""The chart of deploy/helm/leaseq, rendered by helm and checked against the schemas of its kinds. `make kube` fetches what it needs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[3]
CHART: Final = ROOT / "deploy" / "helm" / "leaseq"
FETCHED: Final = Path(os.environ.get("LEASEQ_SERVERS_DIR", ROOT / ".servers")) / "kube"
SCHEMAS: Final = FETCHED / "schemas" / "{{.ResourceKind}}{{.KindSuffix}}.json"

KUBERNETES: Final = "1.34.0"
"""Helm has a version in mind when it renders without a cluster, which is an old one if it was built from its module."""

Object = dict[str, Any]


def tool(*words: str | Path, text: str = "", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run helm, kubeconform or promtool as it was fetched."""
    program = FETCHED / "bin" / words[0]
    assert program.exists(), f"{program} is missing: run tools/kube/fetch.sh .venv/bin/python"
    return subprocess.run(
        [program, *words[1:]],
        input=text,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def fits_schemas(manifests: str) -> None:
    """Check each manifest against the schema of its kind; a kind without a schema fails."""
    done = tool("kubeconform", "-strict", "-summary", "-schema-location", str(SCHEMAS), text=manifests)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Skipped: 0" in done.stdout, done.stdout


def rendered(values: str, release: str = "shop") -> str:
    """The manifests of a release with these values, in YAML."""
    done = template(values, release)
    assert done.returncode == 0, done.stderr
    return done.stdout


def template(values: str, release: str = "shop") -> subprocess.CompletedProcess[str]:
    """Run `helm template`, which can fail."""
    return tool(
        "helm",
        "template",
        release,
        CHART,
        "--namespace",
        "work",
        "--kube-version",
        KUBERNETES,
        "-f",
        "-",
        text=values,
    )


def with_base(values: str) -> str:
    """Values of a page, with those that every release needs."""
    needed = {"url": {"secret": "queue"}, "cleaner": {"image": "cleaner"}}
    return yaml.safe_dump({**needed, **yaml.safe_load(values)})


class Release:
    """The objects of a release with some values; their schemas take them.

    Args:
        values: in YAML.
    """

    def __init__(self, values: str) -> None:
        manifests = rendered(values)
        fits_schemas(manifests)
        self.objects: list[Object] = [one for one in yaml.safe_load_all(manifests) if one]

    def of(self, kind: str) -> list[Object]:
        """Its objects of a kind."""
        return [one for one in self.objects if one["kind"] == kind]

    def named(self, kind: str, name: str) -> Object:
        """Its object of a kind and a name."""
        (found,) = (one for one in self.of(kind) if one["metadata"]["name"] == name)
        return found

    def pods(self) -> Iterator[tuple[Object, Object]]:
        """The pods of its Deployments, each with its only container."""
        for one in self.of("Deployment"):
            pod = one["spec"]["template"]
            (container,) = pod["spec"]["containers"]
            yield pod, container


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    """Return whether a selector selects an object with these labels."""
    return selector.items() <= labels.items()
