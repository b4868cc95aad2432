"""Tiers of tests: what `make test`, `make test-all` and `make test-nightly` run, and a last line about what they left out.

A test is of the tier that its marker names, `slow` or `nightly`, else of the tier `quick`. `--tier=quick,slow` runs those
of the named tiers; without the option every test that pytest is given runs. Tests that start a cluster or sentinels
are slow. Tests of the TypeScript client are too, and are left out if there is no Node or the client was not built.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest
from support import adapters

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS: Final = {"quick": "make test", "slow": "make test-all", "nightly": "make test-nightly"}
"""The tiers, the fastest first, and what runs each."""
WAYS: Final = {**COMMANDS, "TypeScript": "make typescript"}
"""Commands that run the tests that were left out, or install what they need."""
NAME: Final = "leaseq-tiers"


SEVERAL_SERVERS: Final = frozenset({"cluster", "nodes", "sentinel"})
"""Fixtures that start several servers for one test, which is slow."""


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test: the slowest that it is marked for, or that what it uses needs."""
    if item.get_closest_marker("nightly"):
        return "nightly"
    slow = any(item.get_closest_marker(name) for name in ("slow", "typescript"))
    return "slow" if slow or SEVERAL_SERVERS.intersection(getattr(item, "fixturenames", ())) else "quick"


class Tiers:
    """Deselects tests of other tiers, and reports how many there are.

    Args:
        chosen: the tiers that run; None for all.
    """

    def __init__(self, config: pytest.Config, chosen: Sequence[str] | None) -> None:
        unknown = sorted(set(chosen or ()) - COMMANDS.keys())
        if unknown:
            raise pytest.UsageError(f"--tier: {', '.join(unknown)} is none of {', '.join(COMMANDS)}")
        self._config = config
        self._chosen = chosen
        self._left_out: Counter[str] = Counter()

    def _lacks(self, item: pytest.Item) -> str:
        """Return what would run a test that is left out, a key of `WAYS`; nothing for a test that runs."""
        tier = tier_of(item)
        if self._chosen is not None and tier not in self._chosen:
            return tier
        needs_typescript = item.get_closest_marker("typescript") is not None
        return "TypeScript" if needs_typescript and not adapters.typescript_runs() else ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect tests of other tiers."""
        lacking = {item: self._lacks(item) for item in items}
        self._left_out = Counter(filter(None, lacking.values()))
        if self._left_out:
            config.hook.pytest_deselected(items=[item for item in items if lacking[item]])
            items[:] = [item for item in items if not lacking[item]]

    def pytest_sessionfinish(self) -> None:
        """Tell the controller of several processes what this one left out: all of them leave out the same."""
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[NAME] = dict(self._left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take it over from a process."""
        self._left_out = Counter(getattr(node, "workeroutput", {}).get(NAME, self._left_out))

    def pytest_unconfigure(self) -> None:
        """Print the last line."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and self._left_out and not hasattr(self._config, "workeroutput"):
            parts = [
                f"{self._left_out[kind]} {kind} tests (`{command}`)"
                for kind, command in WAYS.items()
                if self._left_out[kind]
            ]
            reporter.write_line(f"left out: {', '.join(parts)}")
