"""The boards for Grafana, made from the metrics that the cleaner declares. `tools/kube/generate.py` writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from leaseq_cleaner.metrics import Metrics

GROUP: Final = 'group=~"$group"'
QUEUE: Final = 'group=~"$group",queue=~"$queue"'
RATE: Final = "$__rate_interval"
COLUMNS: Final = 24
HEIGHT: Final = 8


@dataclass(frozen=True)
class Panel:
    """A graph of one or more queries.

    Args:
        title: its heading.
        queries: each an expression, and what its series are called.
        unit: of Grafana: short, s, ops, percentunit.
        width: of 24 columns.
    """

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    width: int = 8


def per_queue(metric: str, condition: str = "") -> str:
    """Return the value of a metric for each queue: all cleaners report the same, so the greatest of them."""
    return f"max by (group, queue) ({metric}{{{QUEUE}{condition}}})"


def per_queue_in(states: str) -> str:
    """Return the items of each queue in some states, by a condition on the label `state`."""
    return f"sum by (group, queue) (max by (group, queue, state) (leaseq_items{{{QUEUE},{states}}}))"


def events(labels: str, condition: str = "") -> str:
    """Return the rate a second of events of items."""
    return f"max by ({labels}) (rate(leaseq_events_total{{{QUEUE}{condition}}}[{RATE}]))"


def per_group(metric: str, *labels: str) -> str:
    """Return the value of a metric that sums all queues of a group; the group * has all groups."""
    return f"max by ({', '.join(('group', *labels))}) ({metric}{{{GROUP}}})"


NAME: Final = "{{group}}/{{queue}}"
ITEMS: Final = f"max by (group, queue, state) (leaseq_items{{{QUEUE}}})"
QUEUES: Final = (
    Panel("All queues: items", ((per_group("leaseq_group_items", "state"), "{{group}} {{state}}"),)),
    Panel(
        "All queues: the longest wait",
        ((per_group("leaseq_group_next_item_wait_seconds"), "{{group}}"),),
        "s",
    ),
    Panel(
        "All queues: events a second",
        (
            (
                f"max by (group, event) (rate(leaseq_group_events_total{{{GROUP}}}[{RATE}]))",
                "{{group}} {{event}}",
            ),
        ),
        "ops",
    ),
    Panel(
        "All queues: left to clean",
        (
            (per_group("leaseq_group_overdue_leases"), "{{group}} expired leases"),
            (per_group("leaseq_group_due_items"), "{{group}} due items"),
            (per_group("leaseq_group_unplaced_items"), "{{group}} items in no state"),
        ),
    ),
    Panel("All queues: kept outcomes", ((per_group("leaseq_group_kept_outcomes"), "{{group}}"),)),
    Panel(
        "All queues: how many",
        (
            (per_group("leaseq_group_queues"), "{{group}}"),
            (per_group("leaseq_group_paused_queues"), "{{group}} paused"),
        ),
    ),
    Panel("Items", ((f"sum by (state) ({ITEMS})", "{{state}}"),), width=12),
    Panel("The next item waits", ((per_queue("leaseq_next_item_wait_seconds"), NAME),), "s", 12),
    Panel(
        "Work: ready and leased items",
        (
            (
                per_queue_in('state=~"ready|leased"'),
                NAME,
            ),
        ),
        width=12,
    ),
    Panel("Dead items", ((per_queue("leaseq_items", ',state="dead"'), NAME),), width=12),
    Panel(
        "Events a second",
        ((f"sum by (event) ({events('group, queue, event')})", "{{event}}"),),
        "ops",
        12,
    ),
    Panel(
        "Trouble a second",
        (
            (
                events("group, queue, event", ',event=~"reclaimed|died|expired|dropped"'),
                "{{group}}/{{queue}} {{event}}",
            ),
        ),
        "ops",
        12,
    ),
    Panel("Expired leases that are not reclaimed", ((per_queue("leaseq_overdue_leases"), NAME),)),
    Panel("Due items that are not promoted", ((per_queue("leaseq_due_items"), NAME),)),
    Panel("Items in no state", ((per_queue("leaseq_unplaced_items"), NAME),)),
    Panel(
        "Share of the limit of items",
        (
            (
                per_queue_in('state!="dead"') + f" / ({per_queue('leaseq_max_items')} > 0)",
                NAME,
            ),
        ),
        "percentunit",
    ),
    Panel("Kept outcomes", ((per_queue("leaseq_kept_outcomes"), NAME),)),
    Panel("Paused", ((per_queue("leaseq_paused"), NAME),)),
)


def calls(quantile: str) -> str:
    """Return a quantile of how long the calls of cleaners take."""
    return f"histogram_quantile({quantile}, sum by (le, call) (rate(leaseq_cleaner_call_seconds_bucket[{RATE}])))"


CLEANERS: Final = (
    Panel("Server reached", (("leaseq_cleaner_server_up", "{{instance}}"),)),
    Panel(
        "Queues",
        (
            ("leaseq_cleaner_queues", "{{instance}}"),
            ("leaseq_cleaner_hidden_queues", "{{instance}} in sums only"),
        ),
    ),
    Panel("Runs for", (("time() - leaseq_cleaner_start_time_seconds", "{{instance}}"),), "s"),
    Panel(
        "Calls a second",
        ((f"sum by (call) (rate(leaseq_cleaner_call_seconds_count[{RATE}]))", "{{call}}"),),
        "ops",
    ),
    Panel("Time of calls, 99 %", ((calls("0.99"), "{{call}}"),), "s"),
    Panel("Calls under way", (("leaseq_cleaner_calls_under_way", "{{instance}}"),)),
    Panel(
        "Errors a second",
        ((f"sum by (call, error) (rate(leaseq_cleaner_errors_total[{RATE}]))", "{{call}} {{error}}"),),
        "ops",
    ),
    Panel(
        "Moved by light cleans, a second",
        ((f"sum by (what) (rate(leaseq_cleaner_moved_total{{{QUEUE}}}[{RATE}]))", "{{what}}"),),
        "ops",
    ),
    Panel(
        "Since the last deep clean",
        ((f"time() - ({per_queue('leaseq_cleaner_deep_clean_timestamp_seconds')} > 0)", NAME),),
        "s",
    ),
    Panel(
        "Repairs in an hour",
        (
            (
                f"sum by (group, queue, kind) (increase(leaseq_cleaner_repairs_total{{{QUEUE}}}[1h])) > 0",
                NAME + " {{kind}}",
            ),
        ),
    ),
    Panel(
        "Moved by light cleans, a second, all queues",
        (
            (
                f"sum by (group, what) (rate(leaseq_cleaner_group_moved_total{{{GROUP}}}[{RATE}]))",
                "{{group}} {{what}}",
            ),
        ),
        "ops",
    ),
    Panel(
        "Repairs in an hour, all queues",
        (
            (
                f"sum by (group, kind) (increase(leaseq_cleaner_group_repairs_total{{{GROUP}}}[1h])) > 0",
                "{{group}} {{kind}}",
            ),
        ),
    ),
    Panel(
        "Losses in an hour, all queues",
        ((f"sum by (group) (increase(leaseq_cleaner_group_losses_total{{{GROUP}}}[1h]))", "{{group}}"),),
    ),
    Panel(
        "Since the last deep clean, all queues",
        (
            (
                f"time() - ({per_group('leaseq_cleaner_group_deep_clean_timestamp_seconds')} > 0)",
                "{{group}}",
            ),
        ),
        "s",
    ),
    Panel(
        "Losses in an hour",
        ((f"sum by (group, queue) (increase(leaseq_cleaner_losses_total{{{QUEUE}}}[1h]))", NAME),),
    ),
    Panel(
        "Restarts of the server in an hour",
        (("increase(leaseq_cleaner_server_restarts_total[1h])", "{{instance}}"),),
    ),
)
BOARDS: Final = {
    "leaseq-queues": ("leaseq: queues", QUEUES),
    "leaseq-cleaners": ("leaseq: cleaners", CLEANERS),
}
"""Titles and panels by the names of their files, which are also their uids."""


def declared() -> dict[str, str]:
    """Return the descriptions of the metrics of a cleaner, by the names that queries use."""
    found = {}
    for family in Metrics().registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = family.documentation
    return found


def metrics_of(query: str) -> set[str]:
    """Return the names of the metrics in a query; a histogram has the name without its suffix."""
    found = re.findall(r"\bleaseq_\w+", query)
    return {re.sub(r"(?<=_call_seconds)_(bucket|count|sum)$", "", name) for name in found}


def _panel(panel: Panel, number: int, left: int, top: int) -> dict[str, Any]:
    described = declared()
    named = sorted({name for query, _ in panel.queries for name in metrics_of(query)})
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": "\n".join(f"{name}: {described[name]}" for name in named),
        "datasource": source,
        "gridPos": {"x": left, "y": top, "w": panel.width, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": source, "expr": query, "legendFormat": legend}
            for index, (query, legend) in enumerate(panel.queries)
        ],
    }


def _choice(label: str, query: str) -> dict[str, Any]:
    return {
        "name": label,
        "label": label,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": query, "refId": label},
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "sort": 1,
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def board(uid: str) -> dict[str, Any]:
    """Return the model of a board, as Grafana imports it."""
    title, panels = BOARDS[uid]
    drawn = []
    left = top = 0
    for number, panel in enumerate(panels, start=1):
        if left + panel.width > COLUMNS:
            left, top = 0, top + HEIGHT
        drawn.append(_panel(panel, number, left, top))
        left += panel.width
    return {
        "uid": uid,
        "title": title,
        "tags": ["leaseq"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
                _choice("group", "label_values(leaseq_items, group)"),
                _choice("queue", 'label_values(leaseq_items{group=~"$group"}, queue)'),
            ]
        },
        "panels": drawn,
    }
