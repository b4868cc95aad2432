"""docs/kubernetes.md: its manifests and values render and fit their schemas, its lines name what there is."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest
import yaml
from support.charts import CHART, KUBERNETES, ROOT, Release, fits_schemas, template, tool, with_base
from support.snippets import blocks

if TYPE_CHECKING:
    from pathlib import Path

    from support.snippets import Block

PAGE = ROOT / "docs" / "kubernetes.md"
YAML = [block for block in blocks(PAGE) if block.kind == "yaml"]
SHELL = [line for block in blocks(PAGE) if block.kind == "sh" for line in block.text.splitlines()]
MANIFESTS = [block for block in YAML if block.text.startswith("apiVersion:")]
VALUES = [block for block in YAML if block not in MANIFESTS and not block.text.startswith("rules:")]


@pytest.mark.parametrize("block", MANIFESTS, ids=str)
def test_a_manifest_fits_its_schema(block: Block) -> None:
    fits_schemas(block.text)


@pytest.mark.parametrize("block", VALUES, ids=str)
def test_values_render(block: Block) -> None:
    text: str = block.text
    release = Release(with_base(text))
    workers = yaml.safe_load(text).get("workers", {})
    assert len(release.of("Deployment")) == len(workers) + 1
    assert len(release.of("ScaledObject")) == sum("autoscaling" in worker for worker in workers.values())


def test_the_values_to_install_need_nothing_more() -> None:
    (values,) = (block.text for block in VALUES if block.text.startswith("url:"))
    done = template(values)
    assert done.returncode == 0, done.stderr
    (secret,) = (yaml.safe_load(block.text) for block in MANIFESTS if "kind: Secret" in block.text)
    assert yaml.safe_load(values)["url"]["secret"] == secret["metadata"]["name"]
    assert set(secret["stringData"]) == {"url", yaml.safe_load(values)["cleaner"]["url"]["key"]}


def test_the_line_that_installs(tmp_path: Path) -> None:
    """Helm takes its arguments, and renders in place of installing."""
    (line,) = (line for line in SHELL if line.startswith("helm "))
    (values,) = (block.text for block in VALUES if block.text.startswith("url:"))
    (tmp_path / "values.yaml").write_text(values, encoding="utf-8")
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    words = shlex.split(line)
    assert words[:3] == ["helm", "upgrade", "--install"]
    done = tool("helm", "template", "--kube-version", KUBERNETES, *words[3:], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    fits_schemas(done.stdout)


def test_other_lines_name_files_that_there_are() -> None:
    others = [line for line in SHELL if not line.startswith("helm ")]
    assert [shlex.split(line)[0] for line in others] == [
        "tools/build_image.sh",
        "docker",
        "kubectl",
        "kubectl",
    ]
    assert (ROOT / "tools" / "build_image.sh").stat().st_mode & 0o100
    folder = ROOT / others[2].rpartition("--from-file ")[2]
    assert {file.suffix for file in folder.iterdir()} == {".json"}


def test_the_comment_about_workers_has_what_the_schema_takes() -> None:
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    comment = text.partition("\n# workers:\n")[2].partition("\nworkers:")[0]
    listed = yaml.safe_load("\n".join(line[1:] for line in comment.splitlines()))["jobs"]
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))["definitions"]
    assert listed.keys() == schema["worker"]["properties"].keys()
    assert listed["autoscaling"].keys() == schema["autoscaling"]["properties"].keys()
    rendered = Release(with_base(yaml.safe_dump({"workers": {"jobs": {"image": "i", "app": "a:b"}}})))
    worker = rendered.named("Deployment", "shop-leaseq-jobs")["spec"]
    command = worker["template"]["spec"]["containers"][0]["command"]
    assert worker["replicas"] == listed["replicas"]
    for option in ("processes", "concurrency"):
        assert f"--{option}={listed[option]}" in command
    assert f"--grace={listed['graceSeconds']}s" in command
