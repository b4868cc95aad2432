"""A case of a suite, and the context that it is run in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from leaseq_conformance.adapter_protocol import PROTOCOL
from leaseq_conformance.verdict import BrokenError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from leaseq_conformance.adapter_pool import AdapterPool, CaseSession
    from leaseq_conformance.redis_server import Server
    from leaseq_conformance.verdict import Verdict


CASE_SCHEMA: Final = 1
"""Version of the form in which cases are exported and written: a reader of an earlier one may not understand them."""


@dataclass(frozen=True)
class Case:
    """A case, before it is run.

    Attributes:
        name: suite, slash, short name; never used again for another case.
        title: one line that says what is shown.
        rules: the rules of the specification that it rests on.
        capabilities: what of spec/12 the client has to claim for it; `core` is one. Empty: it needs no client.
        body: the case as plain JSON data, for `export`.
        written: the case as its file has it, for `explain`; None if no file does.
    """

    name: str
    title: str
    rules: tuple[str, ...]
    capabilities: tuple[str, ...]
    body: Any = None
    written: Any = None

    @property
    def suite(self) -> str:
        """The suite that it belongs to."""
        return self.name.partition("/")[0]

    def plain(self) -> dict[str, Any]:
        """The case as JSON data."""
        lists = {key: list(getattr(self, key)) for key in ("rules", "capabilities")}
        return {"name": self.name, "title": self.title, **lists, "body": self.body}


@dataclass(frozen=True)
class Context:
    """The context of a run: the server, the adapter and the limits that cases get.

    Attributes:
        server: emptied before each case, its script cache too.
        adapter: the command that starts an adapter process; empty for suites without one.
        capabilities: what the adapter declares.
        seed: for what is drawn at random.
        adapter_protocol: the version that the adapter speaks.
        patience: how many seconds to wait for an answer before the case is `unknown`.
        pool: the adapter processes that are kept from case to case; None for suites without an adapter.
    """

    server: Server
    adapter: tuple[str, ...] = ()
    capabilities: frozenset[str] = frozenset()
    seed: int = 0
    patience: float = 60.0
    pool: AdapterPool | None = None
    adapter_protocol: int = PROTOCOL

    def session(self, *, keeps_workers: bool = False) -> CaseSession:
        """The adapters and queues of one case, for suites that have an adapter; job workers end before it unless it keeps them."""
        if self.pool is None:
            raise BrokenError("this suite needs an adapter: name its command behind --")
        return self.pool.session(keeps_workers=keeps_workers)


class Suite(Protocol):
    """A module that gives cases and runs them."""

    cases: Callable[[], Sequence[Case]]
    """All of its cases, the same at each call."""

    run: Callable[[Case, Context], Verdict]
    """Run one case on an emptied server. An exception that is none of those above is an `error`."""


class ScriptSuite(Suite, Protocol):
    """A suite with cases that need no client: they can be run on other scripts."""

    run_with: Callable[[Case, Context, Mapping[str, str]], Verdict]
    """Run one case with other sources of scripts, by their names: seeded bugs."""
