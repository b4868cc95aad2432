"""Autoscaling counts the items that are ready and leased: by the metrics of several cleaners, and by KEDA's own script on a server."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import promql_parser
import pytest
import redis
import yaml
from support import page_server
from support.alert_rules import selectors
from support.charts import FETCHED, ROOT, Release, tool, with_base
from support.cleaner_metrics import exported_metrics
from support.snippets import blocks

import leaseq

if TYPE_CHECKING:
    from pathlib import Path

    from support.charts import Object

PAGE = ROOT / "docs" / "kubernetes.md"
BASE = """
url: {secret: queue}
cleaner: {image: cleaner}
keda: {prometheus: "http://prometheus:9090", redis: {metadata: {address: "redis:6379"}}}
workers:
  jobs:
    image: shop
    app: shop_jobs:app
    queues: [urgent, shop/mail-out]
    autoscaling: {by: BY, maxReplicas: 9, itemsPerPod: 4}
"""
SERIES = {"urgent/urgent": {"ready": 5, "leased": 3}, "shop/mail-out": {"ready": 0, "leased": 6}}
OTHERS = {"urgent/mail-out": {"ready": 100, "leased": 100}, "urgent/urgent": {"delayed": 100, "dead": 100}}


def scaled(by: str) -> Object:
    """The autoscaler of the worker."""
    release = Release(BASE.replace("BY", by))
    (found,) = release.of("HorizontalPodAutoscaler" if by == "hpa" else "ScaledObject")
    return found


def value_of(formula: str, names: dict[str, float]) -> float:
    """What a formula of KEDA comes to. Of its language it may use what means the same in Python."""
    assert set(re.findall(r"[A-Za-z_]\w*", formula)) <= names.keys() | {"max", "min", "ceil", "floor"}
    assert re.fullmatch(r"[\w\s.,()+*/-]+", formula)
    known = {"max": max, "min": min, "ceil": math.ceil, "floor": math.floor, **names}
    return float(eval(formula, {"__builtins__": {}}, known))  # noqa: S307 (of this repository)


def asked(query: str, folder: Path) -> float:
    """What a Prometheus returns to a query that scrapes two cleaners and another release. The second cleaner is a count behind."""
    labels = promql_labels({"namespace": "work", "service": "shop-leaseq-cleaner"})
    elsewhere = promql_labels({"namespace": "elsewhere", "service": "shop-leaseq-cleaner"})
    series = []
    for counts in (SERIES, OTHERS):
        for queue, states in counts.items():
            group, _, name = queue.partition("/")
            for state, count in states.items():
                item = promql_labels({"group": group, "queue": name, "state": state})
                series += [
                    {"series": f'leaseq_items{{{labels},{item},pod="a"}}', "values": f"{count}x3"},
                    {
                        "series": f'leaseq_items{{{labels},{item},pod="b"}}',
                        "values": f"{max(count - 1, 0)}x3",
                    },
                    {"series": f'leaseq_items{{{elsewhere},{item},pod="c"}}', "values": "1000x3"},
                ]
    test = {
        "input_series": series,
        "promql_expr_test": [
            {"expr": query, "eval_time": "2m", "exp_samples": [{"labels": "{}", "value": -1}]}
        ],
    }
    (folder / "test.yml").write_text(yaml.safe_dump({"tests": [test]}), encoding="utf-8")
    done = tool("promtool", "test", "rules", "test.yml", folder=folder)
    found = re.search(r"got:\s*nil|got:\s*\S*\s+([\d.E+]+)", done.stdout + done.stderr)
    assert found, done.stdout + done.stderr
    assert found[1], "there is no answer"
    return float(found[1])


def promql_labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


def test_metrics_of_keda_count_ready_and_leased_items_once(tmp_path: Path) -> None:
    spec = scaled("keda-prometheus")["spec"]
    counts = {trigger["name"]: asked(trigger["metadata"]["query"], tmp_path) for trigger in spec["triggers"]}
    assert counts == {"items_urgent": 8, "items_shop_mail_out": 6}
    modifiers = spec["advanced"]["scalingModifiers"]
    assert value_of(modifiers["formula"], counts) == 14
    assert (modifiers["target"], modifiers["metricType"]) == ("4", "AverageValue")


def test_keda_reads_metrics_that_there_are() -> None:
    metrics = exported_metrics()
    for trigger in scaled("keda-prometheus")["spec"]["triggers"]:
        for selector in selectors(trigger["metadata"]["query"]):
            assert {matcher.name for matcher in selector.matchers.matchers} - {
                "namespace",
                "service",
            } <= metrics[selector.name or ""]


def test_the_adapter_of_the_page_counts_the_same(tmp_path: Path) -> None:
    (rules,) = (yaml.safe_load(block.text) for block in blocks(PAGE) if block.text.startswith("rules:"))
    (rule,) = rules["rules"]["external"]
    (metric,) = scaled("hpa")["spec"]["metrics"]
    named = metric["external"]["metric"]
    assert rule["name"]["as"] == named["name"]
    assert rule["seriesQuery"] == "leaseq_items"
    chosen = [
        f'{one["key"]}=~"{"|".join(one["values"])}"'
        for one in named["selector"]["matchExpressions"]
        if one["operator"] == "In"
    ]
    matchers = ",".join(['namespace="work"', *chosen])
    query = rule["metricsQuery"].replace("<<.LabelMatchers>>", matchers)
    promql_parser.parse(query)
    # of two queues in two groups it would also count those that swap them: none but OTHERS, by 200
    assert asked(query, tmp_path) == 14 + 200
    assert metric["external"]["target"] == {"type": "AverageValue", "averageValue": "4"}


def script_of_keda() -> str:
    """The script that KEDA's scaler for Redis runs, as its source has it."""
    source = (FETCHED / "redis_scaler.go").read_text(encoding="utf-8")
    (script,) = re.findall(r"luaScript := `(.*?)`", source, re.DOTALL)
    return str(script)


def user_of_keda() -> str:
    (line,) = (block.text for block in blocks(PAGE) if block.text.startswith("user keda "))
    return line.strip()


@pytest.mark.each_server
def test_the_scaler_of_keda_counts_on_a_server(startable_name: str, tmp_path: Path) -> None:
    """With the user of the page, which can do nothing else."""
    triggers = scaled("keda-redis")["spec"]["triggers"]
    password = page_server.passwords([user_of_keda()])["keda"]
    with page_server.PageServer(
        startable_name, tmp_path, users=["user default on nopass ~* &* +@all", user_of_keda()]
    ) as server:
        with leaseq.WorkQueue("urgent", server.url) as queue:
            for number in range(5):
                queue.add_item(leaseq.Item(b"", id=f"ready {number}"))
            queue.add_item(leaseq.Item(b"later"), delay=3600)
            held = [queue.lease(lease_secs=60) for _ in range(2)]
        with redis.Redis(server.host, server.port, username="keda", password=password, protocol=3) as keda:
            counts = {
                trigger["name"]: float(keda.eval(script_of_keda(), 1, trigger["metadata"]["listName"]))
                for trigger in triggers
            }
            with pytest.raises(redis.exceptions.NoPermissionError):
                keda.zrange("leaseq:{urgent}:urgent:ready", 0, -1)
            with pytest.raises(redis.RedisError, match=r"(?i)permission|can't run|NOPERM"):
                keda.eval("return redis.call('zrange', KEYS[1], 0, -1)", 1, "leaseq:{urgent}:urgent:ready")
    assert len(held) == 2
    assert counts == {
        "ready_urgent": 3,
        "leased_urgent": 2,
        "ready_shop_mail_out": 0,
        "leased_shop_mail_out": 0,
    }
    assert value_of(scaled("keda-redis")["spec"]["advanced"]["scalingModifiers"]["formula"], counts) == 5


@pytest.mark.parametrize(
    ("worker", "counts", "wanted"),
    [
        ("steady", {"items_reports": 55}, 55),
        ("spot", {"items_reports": 55, "running": 2}, 35),
        ("spot", {"items_reports": 15, "running": 4}, 0),
        (
            "media",
            {"ready_thumbnails": 30, "leased_thumbnails": 10, "ready_films": 2, "leased_films": 4},
            2 + 2,
        ),
    ],
)
def test_the_formulas_of_the_page(worker: str, counts: dict[str, float], wanted: float) -> None:
    """43 thumbnails, half of the films among them, are work for two pods, 6 films for two more."""
    release = Release(next(with_base(block.text) for block in blocks(PAGE) if f"  {worker}:\n" in block.text))
    spec = release.named("ScaledObject", f"shop-leaseq-{worker}")["spec"]
    assert {trigger["name"] for trigger in spec["triggers"]} == counts.keys()
    assert value_of(spec["advanced"]["scalingModifiers"]["formula"], counts) == wanted


def test_the_first_tier_of_the_page_is_what_the_second_counts() -> None:
    release = Release(next(with_base(block.text) for block in blocks(PAGE) if "  spot:\n" in block.text))
    labels = release.named("Deployment", "shop-leaseq-steady")["spec"]["template"]["metadata"]["labels"]
    triggers = release.named("ScaledObject", "shop-leaseq-spot")["spec"]["triggers"]
    selector = triggers[-1]["metadata"]["podSelector"]
    assert dict(pair.split("=") for pair in selector.split(",")).items() <= labels.items()
