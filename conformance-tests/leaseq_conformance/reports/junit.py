"""Results as JUnit XML, which continuous integration reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from leaseq_conformance.verdict import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from leaseq_conformance.runner import Result, Run

NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot contain."""


def write_junit(run: Run, path: Path) -> None:
    """Write one test suite for each suite, one test case for each case."""
    root = ET.Element("testsuites", name=f"leaseq-conformance {run.client} on {run.server}")
    suites: dict[str, list[Result]] = {}
    for result in run.results:
        suites.setdefault(result.case.suite, []).append(result)
    for name, results in suites.items():
        cases = [_case(result) for result in results]
        counts = {
            "tests": len(cases),
            "failures": sum(case.find("failure") is not None for case in cases),
            "errors": sum(case.find("error") is not None for case in cases),
            "skipped": sum(case.find("skipped") is not None for case in cases),
        }
        attributes = {key: str(count) for key, count in counts.items()}
        suite = ET.SubElement(root, "testsuite", {"name": name, **attributes})
        suite.extend(cases)
    ET.indent(root)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _case(result: Result) -> ET.Element:
    verdict = result.verdict
    element = ET.Element(
        "testcase",
        classname=result.case.suite,
        name=result.case.name.partition("/")[2],
        time=f"{verdict.seconds:.3f}",
    )
    kind = _kind(result)
    if kind:
        message = verdict.message or "listed as a known failure, but it passes: take it off the list"
        ET.SubElement(element, kind, message=_clean(message)).text = _clean(verdict.difference)
    if verdict.transcript:
        ET.SubElement(element, "system-out").text = _clean("\n".join(verdict.transcript))
    if verdict.stderr:
        ET.SubElement(element, "system-err").text = _clean("\n".join(verdict.stderr))
    return element


def _kind(result: Result) -> str | None:
    if result.wrong:
        return "failure"
    if result.verdict.outcome in {Outcome.UNKNOWN, Outcome.ERROR}:
        return "error"
    return None if result.passed else "skipped"


def _clean(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)
