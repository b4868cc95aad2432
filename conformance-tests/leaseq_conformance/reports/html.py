"""Results as one HTML page that needs nothing beside itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import jinja2

from leaseq_conformance.conformance_levels import claim, levels
from leaseq_conformance.registry import again
from leaseq_conformance.rules import rules

if TYPE_CHECKING:
    from pathlib import Path

    from leaseq_conformance.runner import Run


def write_html(run: Run, path: Path) -> None:
    """Write the page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("leaseq_conformance.reports", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    page = environment.get_template("page.html").render(
        run=run,
        claim=claim(run),
        levels=levels(run),
        counts=Counter(word(result.verdict.outcome.value, known=result.known) for result in run.results),
        suites=list(dict.fromkeys(result.case.suite for result in run.results)),
        word=word,
        again=again,
        rules=rules(),
        passed=sum(result.passed for result in run.claimed),
        claimed=len(run.claimed),
    )
    path.write_text(page, "utf-8")


def word(outcome: str, *, known: bool) -> str:
    """Return the outcome of a case for people. Known failures have separate words."""
    if not known:
        return outcome
    return "fixed" if outcome == "pass" else "known"
