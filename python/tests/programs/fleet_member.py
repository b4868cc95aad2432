"""Python's part of `fleets/test_four_languages.py`: `python -m programs.fleet_member produce URL COUNT`, or `work URL`.

The same program is in TypeScript, Go and Rust: `typescript/test/fleet-member.ts`, `go/internal/fleetmember`,
`rust/adapter/src/bin/fleet-member.rs`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Final

import leaseq
from leaseq import Item

if TYPE_CHECKING:
    from collections.abc import Callable

    from leaseq import LeasedItem

LANGUAGE: Final = "python"
LANGUAGES: Final = ("python", "typescript", "go", "rust")
FACTOR, SHARED, DIRECTED = 3, 13, 17
"""The factor of this language for bytes, and its numbers for the two items that follow."""
LEASE_SECS: Final = 60.0
"""Seconds. Items that a worker is late with, or held when it was killed, are made to expire by the test."""
HOUR: Final = 3600.0


class Member:
    """Queues of the fleet."""

    def __init__(self, open_queue: Callable[[str], leaseq.WorkQueue]) -> None:
        self._open = open_queue
        self._leases = 0
        self._handed_off = 0

    def produce(self, count: int) -> None:
        """Add `count` items to the queue of each language."""
        for language in LANGUAGES:
            items = [
                Item(bytes([number % 256]), id=f"{language}-{LANGUAGE}-{number}") for number in range(count)
            ]
            if not all(self._open(language).add_items(items)):
                raise SystemExit("an item was there already")

    def work(self) -> None:
        """Work until killed."""
        shared, own = self._open("shared"), self._open(LANGUAGE)
        directed = {language: self._open(f"to-{language}") for language in LANGUAGES}
        queues = leaseq.WorkQueues([directed[LANGUAGE], own, shared], fair=True)
        late: LeasedItem | None = None
        while True:
            item = queues.lease(LEASE_SECS)
            self._leases += 1
            if self._leases % 7 == 0:
                item, late = late, item  # in its place an older one, which another worker may have by now
            if item is None:
                continue
            if item.queue is own:
                self._hand_off(item, shared, directed)
            else:
                self._finish(item)

    def _hand_off(
        self, item: LeasedItem, shared: leaseq.WorkQueue, directed: dict[str, leaseq.WorkQueue]
    ) -> None:
        (byte,) = item.data
        made = byte * FACTOR % 256
        target = directed[LANGUAGES[byte % len(LANGUAGES)]]
        items = [
            (queue, Item.from_json_data({"a": a, "b": made, "from": LANGUAGE}, id=item.derived_id(step)))
            for queue, a, step in ((shared, SHARED, "shared"), (target, DIRECTED, "directed"))
        ]
        keeping = leaseq.AddOptions(keep=HOUR)
        follow_ups = [(queue, follow_up, keeping) for queue, follow_up in items]
        if not item.queue.complete(item, then=follow_ups):
            return
        self._report(item)
        self._handed_off += 1
        if self._handed_off % 6 == 0 and item.queue.complete(item, then=follow_ups):
            raise SystemExit(f"{item.id} was completed twice")

    def _finish(self, item: LeasedItem) -> None:
        given = json.loads(item.data)
        a, b = given["a"], given["b"]
        result = {"a": a, "sum": a + b, "prod": a * b, "worker": LANGUAGE}
        if item.queue.complete(item, result=json.dumps(result).encode()):
            self._report(item)

    @staticmethod
    def _report(item: LeasedItem) -> None:
        """Write a line in one call, so that a kill leaves it whole or absent."""
        os.write(1, f"completed {item.queue.name} {item.id} {item.token}\n".encode())


def main() -> None:
    """Produce or work."""
    role, url, *rest = sys.argv[1:]
    with contextlib.ExitStack() as opened:
        member = Member(lambda name: opened.enter_context(leaseq.WorkQueue(name, url, group="fleet")))
        if role == "produce":
            member.produce(int(rest[0]))
        else:
            member.work()


if __name__ == "__main__":
    main()
