"""The alert rules for Prometheus, and what they read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import promql_parser
import yaml

ALERTS: Final = Path(__file__).parents[3] / "cleaner" / "alerts.yml"


def alert_rules() -> list[dict[str, Any]]:
    """Return all rules of the file."""
    loaded = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
    assert list(loaded) == ["groups"]
    return [rule for group in loaded["groups"] for rule in group["rules"]]


def selectors(expression: str) -> list[promql_parser.VectorSelector]:
    """Return the selectors of series in an expression, as the parser of Prometheus sees it."""
    found: list[promql_parser.VectorSelector] = []

    def walk(node: Any) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)
        for name in ("expr", "lhs", "rhs", "vector_selector", "param"):
            child = getattr(node, name, None)
            if child is not None:
                walk(child)
        for child in getattr(node, "args", ()):
            walk(child)

    walk(promql_parser.parse(expression))
    return found
