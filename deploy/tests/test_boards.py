"""The boards for Grafana: what they ask for is there, and every metric of the cleaner is on a board."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boards
import promql_parser
import pytest
from support.alert_rules import selectors
from support.charts import ROOT
from support.cleaner_metrics import exported_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = ROOT / "deploy" / "grafana"
OF_PROMETHEUS = {"instance", "le"}
"""Labels that no metric declares."""


def board(uid: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / f"{uid}.json").read_text(encoding="utf-8"))
    return loaded


def queries() -> Iterator[tuple[str, str, str]]:
    """Every query as Grafana sends it, with its panel and what its series are called."""
    for uid in boards.BOARDS:
        for panel in board(uid)["panels"]:
            for target in panel["targets"]:
                sent = (
                    target["expr"]
                    .replace("$__rate_interval", "1m")
                    .replace("$group", ".*")
                    .replace("$queue", ".*")
                )
                yield panel["title"], sent, target["legendFormat"]


@pytest.mark.parametrize(("panel", "query", "legend"), list(queries()))
def test_a_query_reads_metrics_that_there_are(panel: str, query: str, legend: str) -> None:
    metrics = exported_metrics()
    promql_parser.parse(query)
    labels = set()
    for selector in selectors(query):
        name = boards.metrics_of(selector.name or "")
        assert name <= metrics.keys(), panel
        labels = metrics[name.pop()] | OF_PROMETHEUS
        assert {matcher.name for matcher in selector.matchers.matchers} <= labels, panel
    shown = {part.partition("}}")[0] for part in legend.split("{{")[1:]}
    assert shown
    assert shown <= labels, panel


def test_every_metric_is_on_a_board() -> None:
    shown = {name for _, query, _ in queries() for name in boards.metrics_of(query)}
    assert shown == set(exported_metrics()) == set(boards.declared())


@pytest.mark.parametrize("uid", boards.BOARDS)
def test_its_panels_do_not_overlap(uid: str) -> None:
    model = board(uid)
    assert model["uid"] == uid
    assert len({panel["id"] for panel in model["panels"]}) == len(model["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in model["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= boards.COLUMNS
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["description"]


@pytest.mark.parametrize("uid", boards.BOARDS)
def test_its_variables_are_those_that_its_queries_have(uid: str) -> None:
    variables = {one["name"] for one in board(uid)["templating"]["list"]}
    assert variables == {"datasource", "group", "queue"}
