"""The answer of a check, and the report of the doctor."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Status = Literal["ok", "advice", "unknown", "problem"]
"""`advice`: it works, and could be better. `unknown`: the check could not be made, which is no pass."""


class Verdict(NamedTuple):
    """The answer of one check: its status, what was found, and what to do about it ("" if there is nothing to do)."""

    status: Status
    found: str
    do: str = ""


def ok(found: str) -> Verdict:
    """Nothing to do."""
    return Verdict("ok", found)


def advice(found: str, do: str) -> Verdict:
    """The status of a check that found something to improve."""
    return Verdict("advice", found, do)


def unknown(found: str, do: str) -> Verdict:
    """The check could not be made."""
    return Verdict("unknown", found, do)


def problem(found: str, do: str) -> Verdict:
    """Something has to be done."""
    return Verdict("problem", found, do)


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of one server or queue.

    `check` is its stable name, `about` the server ("127.0.0.1:6379") or queue it was made of; `found` says what is there
    and `do` what to do about it, "" where there is nothing to do.
    """

    check: str
    about: str
    status: Status
    found: str
    do: str


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, in the order in which the checks were made."""

    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """True if every check was made and found no problem."""
        return all(finding.status in {"ok", "advice"} for finding in self.findings)

    def count(self, status: Status) -> int:
        """Return how many findings have this status."""
        return sum(finding.status == status for finding in self.findings)
