"""The chart: what it renders fits the schemas of its kinds, and is what the cleaner and the workers take."""

from __future__ import annotations

import json
import re
import tomllib
import urllib.request
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml
from support import page_server
from support.charts import CHART, ROOT, Release, selects, template, tool
from support.pasted import service
from support.servers import ReservedPort, wait_until

import leaseq
import leaseq.jobs
from leaseq.cli.program import program
from leaseq_cleaner.command import program as cleaner_program

if TYPE_CHECKING:
    from pathlib import Path

    from support.charts import Object

EVERYTHING = """
url: {secret: queue, key: url}
caSecret: queue-ca
imagePullSecrets: [{name: registry}]
cleaner:
  image: registry.example/leaseq-cleaner:0.1.0
  replicas: 3
  queues: [orders, mail-*, shop/orders]
  settings: {deep-every: 12h, deep-rate: 5, light-every: 2s, log-level: debug}
  url: {key: cleaner-url}
  podAnnotations: {example.com/team: shop}
  nodeSelector: {disk: fast}
  tolerations: [{key: spot, operator: Exists}]
workers:
  jobs:
    image: registry.example/shop:1.0.0
    app: shop_jobs:app
    queues: [urgent, default]
    processes: 1
    concurrency: 4
    port: 9744
    graceSeconds: 20
    env: {SHOP: "yes", LIMIT: 10}
    secrets: [shop-database]
    url: {secret: other}
    resources: {requests: {cpu: "1"}}
    podAnnotations: {example.com/team: shop}
    nodeSelector: {disk: fast}
    tolerations: [{key: spot, operator: Exists}]
    autoscaling: {by: keda-redis, maxReplicas: 9, itemsPerPod: 4}
  sounds:
    image: registry.example/sounds:1.0.0
    command: [/shop/worker]
    port: 9743
    graceSeconds: 300
    replicas: 2
keda: {redis: {metadata: {address: "redis:6379", enableTLS: true}, authentication: queue}}
serviceMonitor: {enabled: true, interval: 30s, labels: {release: prometheus}}
prometheusRule: {enabled: true, labels: {release: prometheus}}
networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {name: monitoring}}}]}
"""
LEAST = "{url: {secret: queue}, cleaner: {image: cleaner}}"
JOBS = """
import leaseq.jobs

app = leaseq.jobs.App()


@app.job(name="double", queue="urgent")
def double(number: int) -> int:
    return 2 * number
"""


@pytest.fixture(scope="module")
def everything() -> Release:
    return Release(EVERYTHING)


def changed(path: str, value: Any) -> str:
    """The values of everything, with another one; None takes it out."""
    values: Any = yaml.safe_load(EVERYTHING)
    place = values
    *folders, last = path.split(".")
    for name in folders:
        place = place.setdefault(name, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return yaml.safe_dump(values)


def variables(container: Object, secrets: dict[str, str]) -> dict[str, str]:
    """The environment of a container, by what is in Secrets as NAME/KEY."""
    found = {}
    for one in container["env"]:
        reference = one.get("valueFrom", {}).get("secretKeyRef")
        found[one["name"]] = secrets[f"{reference['name']}/{reference['key']}"] if reference else one["value"]
    return found


def cleaner_of(release: Release) -> Object:
    """The container of the cleaner."""
    pod = release.named("Deployment", "shop-leaseq-cleaner")["spec"]["template"]["spec"]
    container: Object = pod["containers"][0]
    return container


def answers(port: int, path: str) -> bool:
    """Return whether a program on this machine returns 200 for a path."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def options(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def test_helm_has_nothing_to_say_about_it() -> None:
    done = tool("helm", "lint", "--strict", CHART, "-f", "-", text=EVERYTHING)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 chart(s) linted, 0 chart(s) failed" in done.stdout


def test_the_least_that_is_needed() -> None:
    release = Release(LEAST)
    assert sorted(one["kind"] for one in release.objects) == ["Deployment", "PodDisruptionBudget", "Service"]
    assert release.named("Deployment", "shop-leaseq-cleaner")["spec"]["replicas"] == 2


def test_its_kinds(everything: Release) -> None:
    kinds = [one["kind"] for one in everything.objects]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "Deployment": 3,
        "PodDisruptionBudget": 3,
        "Service": 1,
        "ScaledObject": 1,
        "ServiceMonitor": 1,
        "PodMonitor": 2,
        "PrometheusRule": 1,
        "NetworkPolicy": 1,
    }
    names = [(one["kind"], one["metadata"]["name"]) for one in everything.objects]
    assert len(set(names)) == len(names)


def test_it_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        ("{}", "url.secret is needed|cleaner.image is needed"),
        ("{url: {secret: queue}}", "cleaner.image is needed"),
        ("{cleaner: {image: cleaner}}", "url.secret is needed"),
        (changed("url", "redis://shop:password@redis"), "want object|Expected: object"),
        (changed("replicas", 3), "replicas"),
        (changed("cleaner.setting", {}), "setting"),
        (changed("cleaner.settings.listen", "off"), "listen"),
        (changed("workers.cleaner", {"image": "i", "app": "a:b"}), "cleaner"),
        (changed("workers.Jobs", {"image": "i", "app": "a:b"}), "Jobs"),
        (changed("workers.jobs.app", None), "oneOf|command"),
        (changed("workers.jobs.command", ["x"]), "oneOf|command"),
        (changed("workers.sounds.processes", 2), "oneOf|processes"),
        (changed("workers.jobs.image", None), "image"),
        (changed("workers.jobs.queues", ["a b"]), "pattern"),
        (changed("workers.jobs.env.REDIS_URL", "redis://shop:password@redis"), "REDIS_URL"),
        (changed("workers.jobs.replicas", 2), "replicas|not"),
        (changed("workers.jobs.autoscaling.by", "redis"), "enum|one of"),
        (changed("workers.jobs.autoscaling.maxReplicas", None), "maxReplicas"),
        (changed("workers.jobs.autoscaling.by", "keda-prometheus"), "keda.prometheus is needed"),
        (
            changed(
                "workers.jobs.autoscaling",
                {"by": "hpa", "maxReplicas": 3, "itemsPerPod": 1, "minReplicas": 0},
            ),
            "minimum",
        ),
        (
            changed(
                "workers.jobs.autoscaling", {"by": "hpa", "maxReplicas": 3, "itemsPerPod": 1, "formula": "1"}
            ),
            "not",
        ),
        (changed("workers.jobs.queues", None), "autoscaling needs queues"),
        (changed("workers.jobs.queues", ["a-b", "a.b"]), "same name in a formula"),
        (changed("keda.redis.metadata.password", "secret"), "password"),
    ],
)
def test_it_refuses_values_that_it_cannot_use(values: str, refusal: str) -> None:
    done = template(values)
    assert done.returncode != 0
    assert re.search(refusal, done.stderr), done.stderr


def test_a_url_is_in_no_argument_and_no_plain_variable(everything: Release) -> None:
    for _, container in everything.pods():
        assert "redis" not in json.dumps(container.get("command", [])) + json.dumps(container.get("args", []))
        for one in container["env"]:
            is_url = one["name"] in {"REDIS_URL", "LEASEQ_CLEANER_URL"}
            assert ("secretKeyRef" in one.get("valueFrom", {})) == is_url, one
            assert is_url or "://" not in one["value"]


def test_every_pod_runs_with_few_rights(everything: Release) -> None:
    for pod, container in everything.pods():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False
        assert spec["securityContext"] == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]  # noqa: S108
        assert spec["affinity"]["podAntiAffinity"]


def test_what_selects_pods_selects_those_of_one_deployment(everything: Release) -> None:
    labels = {
        one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"]
        for one in everything.of("Deployment")
    }

    def selected(selector: dict[str, str]) -> list[str]:
        return [name for name, given in labels.items() if selects(selector, given)]

    for one in everything.of("Deployment") + everything.of("PodDisruptionBudget"):
        assert selected(one["spec"]["selector"]["matchLabels"]) == [one["metadata"]["name"]]
    (served,) = everything.of("Service")
    assert selected(served["spec"]["selector"]) == ["shop-leaseq-cleaner"]
    (monitor,) = everything.of("ServiceMonitor")
    assert selects(monitor["spec"]["selector"]["matchLabels"], served["metadata"]["labels"])
    assert monitor["spec"]["endpoints"][0]["port"] == served["spec"]["ports"][0]["name"]
    (policy,) = everything.of("NetworkPolicy")
    assert selected(policy["spec"]["podSelector"]["matchLabels"]) == sorted(labels)
    watched = [selected(one["spec"]["selector"]["matchLabels"]) for one in everything.of("PodMonitor")]
    assert watched == [["shop-leaseq-jobs"], ["shop-leaseq-sounds"]]
    (scaled,) = everything.of("ScaledObject")
    assert scaled["spec"]["scaleTargetRef"]["name"] in labels


def test_a_worker_has_time_to_stop(everything: Release) -> None:
    """docs/deployment.md: the stop time must be longer than --grace and 10 s."""
    jobs = everything.named("Deployment", "shop-leaseq-jobs")["spec"]["template"]["spec"]
    assert "--grace=20s" in jobs["containers"][0]["command"]
    assert jobs["terminationGracePeriodSeconds"] > 20 + 10
    sounds = everything.named("Deployment", "shop-leaseq-sounds")["spec"]["template"]["spec"]
    assert sounds["terminationGracePeriodSeconds"] > 300 + 10


def test_only_a_worker_with_a_port_has_probes(everything: Release) -> None:
    silent = Release(changed("workers.jobs.port", None))
    (container,) = silent.named("Deployment", "shop-leaseq-jobs")["spec"]["template"]["spec"]["containers"]
    assert not container.keys() & {"ports", "livenessProbe", "readinessProbe"}
    assert not any(word.startswith("--listen") for word in container["command"])
    of_worker = {
        name: everything.named("Deployment", f"shop-leaseq-{name}")["spec"]["template"]["spec"]["containers"][
            0
        ]
        for name in ("jobs", "sounds")
    }
    assert of_worker["jobs"]["ports"] == [{"name": "metrics", "containerPort": 9744}]
    assert of_worker["sounds"]["ports"] == [{"name": "metrics", "containerPort": 9743}]
    assert of_worker["sounds"]["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert of_worker["sounds"]["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}


def test_replicas_are_not_set_where_something_scales_them(everything: Release) -> None:
    assert "replicas" not in everything.named("Deployment", "shop-leaseq-jobs")["spec"]
    assert everything.named("Deployment", "shop-leaseq-sounds")["spec"]["replicas"] == 2


def test_the_rules_are_those_of_the_cleaner(everything: Release, tmp_path: Path) -> None:
    (rule,) = everything.of("PrometheusRule")
    assert rule["spec"] == yaml.safe_load((ROOT / "cleaner" / "alerts.yml").read_text(encoding="utf-8"))
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rule["spec"]), encoding="utf-8")
    done = tool("promtool", "check", "rules", tmp_path / "rules.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_flags_are_those_of_the_programs(everything: Release) -> None:
    worker = program.get_command(click.Context(program), "worker")
    assert worker
    taken = options(worker)
    _, container = list(everything.pods())[1]
    given = [word.partition("=")[0] for word in container["command"] if word.startswith("--")]
    assert len(given) > 4
    assert set(given) <= taken
    settings = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    named = settings["properties"]["cleaner"]["properties"]["settings"]["properties"]
    assert {f"--{name}" for name in named} <= options(cleaner_program)


def test_the_worker_runs(everything: Release, url: str, tmp_path: Path) -> None:
    (tmp_path / "shop_jobs.py").write_text(JOBS)
    container = everything.named("Deployment", "shop-leaseq-jobs")["spec"]["template"]["spec"]["containers"][
        0
    ]
    given = variables(container, {"other/url": url})
    assert given == {"REDIS_URL": url, "SHOP": "yes", "LIMIT": "10"}
    port = ReservedPort()
    here = f"--listen=127.0.0.1:{port.number}"
    command = [here if word == "--listen=0.0.0.0:9744" else word for word in container["command"]]
    assert here in command
    with service(command, tmp_path, given), leaseq.jobs.App(url) as app:
        double = app.job(name="double", queue="urgent")(page_server.double)
        assert double.enqueue(4).result(timeout=60) == 8
        for probe in ("livenessProbe", "readinessProbe"):
            wait_until(partial(answers, port.number, container[probe]["httpGet"]["path"]))
        assert answers(port.number, "/metrics")
    port.close()


def test_the_cleaner_always_shows_the_queues_that_autoscaling_reads(everything: Release) -> None:
    named = "LEASEQ_CLEANER_METRICS_QUEUE"
    assert named not in variables(cleaner_of(everything), {"queue/cleaner-url": ""})
    values = yaml.safe_load(changed("workers.jobs.autoscaling.by", "keda-prometheus"))
    values["keda"]["prometheus"] = "http://prometheus:9090"
    values["workers"]["jobs"]["queues"] = ["urgent", "shop/default"]
    shown = variables(cleaner_of(Release(yaml.safe_dump(values))), {"queue/cleaner-url": ""})[named]
    context = cleaner_program.make_context(
        "leaseq-cleaner", ["--metrics-queue", "urgent", "--metrics-queue", "shop/default"]
    )
    assert tuple(shown.split()) == context.params["metrics_queue"]


def test_the_cleaner_runs_and_answers_its_probes(everything: Release, url: str, tmp_path: Path) -> None:
    dockerfile = (ROOT / "cleaner" / "Dockerfile").read_text(encoding="utf-8")
    entry: list[str] = json.loads(re.findall(r"^ENTRYPOINT (.*)$", dockerfile, re.MULTILINE)[-1])
    container = cleaner_of(everything)
    given = variables(container, {"queue/cleaner-url": url})
    port = ReservedPort()
    host, _, number = given["LEASEQ_CLEANER_LISTEN"].partition(":")
    assert (host, number) == ("0.0.0.0", str(container["ports"][0]["containerPort"]))  # noqa: S104
    given["LEASEQ_CLEANER_LISTEN"] = f"127.0.0.1:{port.number}"

    with leaseq.WorkQueue("orders", url) as queue, service(entry, tmp_path, given):
        queue.add_item(leaseq.Item(b"due"), delay=0.05)
        for probe in ("livenessProbe", "readinessProbe"):
            asked = container[probe]["httpGet"]
            assert asked["port"] == container["ports"][0]["name"]
            wait_until(partial(answers, port.number, asked["path"]))
        assert answers(port.number, "/metrics")
        wait_until(lambda: queue.stats().promoted == 1)
    port.close()
