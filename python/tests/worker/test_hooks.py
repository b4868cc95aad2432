"""Hooks of several objects around one handler."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from leaseq.item import LeasedItemBase
from leaseq.worker.hooks import Hooks, SafeHooks

if TYPE_CHECKING:
    from collections.abc import Iterator


class Around(Hooks):
    """Records when it is entered and left, and with which exception."""

    def __init__(self, name: str, calls: list[str], fails: str = "") -> None:
        self.name = name
        self.calls = calls
        self.fails = fails

    def started(self, item: Any) -> None:
        self.calls.append(f"{self.name} started")

    @contextlib.contextmanager
    def around(self, item: Any) -> Iterator[None]:
        if self.fails == "before":
            raise RuntimeError("hook")
        self.calls.append(f"{self.name} in")
        try:
            yield
        except BaseException as error:
            self.calls.append(f"{self.name} out: {error}")
            if self.fails != "swallows":
                raise
        else:
            self.calls.append(f"{self.name} out")
        if self.fails == "after":
            raise RuntimeError("hook")


ITEM = LeasedItemBase("a", b"", 1, 1, 0.0, 30.0)


def test_the_first_hook_is_outermost() -> None:
    calls: list[str] = []
    hooks = SafeHooks([Around("a", calls), Hooks(), Around("b", calls)])
    with hooks.context(ITEM):
        calls.append("handler")
    assert calls == ["a started", "b started", "a in", "b in", "handler", "b out", "a out"]


@pytest.mark.parametrize("fails", ["", "before", "after", "swallows"])
def test_each_hook_sees_how_the_handler_ended_whatever_another_one_does(fails: str) -> None:
    calls: list[str] = []
    hooks = SafeHooks([Around("a", calls), Around("b", calls, fails), Around("c", calls)])
    with pytest.raises(ValueError, match="no"), hooks.context(ITEM):
        raise ValueError("no")
    assert [call for call in calls if call[0] == "c"] == ["c started", "c in", "c out: no"]
    outermost = [call for call in calls if call[0] == "a"]
    assert outermost[:2] == ["a started", "a in"]
    assert len(outermost) == 3
    assert outermost[2].startswith("a out")


@pytest.mark.parametrize(
    "event", ["leased", "started", "ended", "completed", "released", "dead_lettered", "lost", "server_back"]
)
def test_a_hook_that_fails_keeps_no_other_from_an_event(event: str) -> None:
    called: list[str] = []

    def noted(name: str, *, fails: bool) -> Any:
        def call(*_: object) -> None:
            called.append(name)
            if fails:
                raise RuntimeError("hook")

        return type(name, (Hooks,), {event: staticmethod(call)})()

    hooks = SafeHooks([noted("a", fails=True), noted("b", fails=True), noted("c", fails=False)])
    hooks.emit(event, ITEM)
    assert called == ["a", "b", "c"]
