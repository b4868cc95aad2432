"""When the leases that this process holds are extended. No input or output."""

from collections.abc import Sequence

from leaseq._scripts import MAX_ENTRIES
from leaseq.flows import REPLY_GRACE
from leaseq.item import Extension, LeasedItemBase


def until_next(lease_secs: float) -> float:
    """Seconds from one extension to the next: there are three in a lease."""
    return lease_secs / 3


def until_again(lease_secs: float) -> float:
    """Seconds from an extension that failed to the next try: there are three more before the lease ends."""
    return lease_secs / 9


def reply_timeout(leases: Sequence[tuple[LeasedItemBase, float]]) -> float:
    """Seconds that the answer to an extension may take: a lost one leaves time to try again before a lease ends."""
    return min(REPLY_GRACE, *(until_again(lease_secs) for _, lease_secs in leases))


def soon(lease_secs: float) -> float:
    """Seconds by which an extension may come early, to go out with others: none before a quarter of a lease (LQ-CLIENT-13)."""
    return lease_secs / 15


def extending(leases: Sequence[tuple[LeasedItemBase, float]], now: float, *, asked: bool) -> list[Extension]:
    """Note that these leases are extended by one call. `asked`: the user of the items asked for it."""
    return [item.hold.extending(lease_secs, now, asked=asked) for item, lease_secs in leases]


def extensions_failed(
    leases: Sequence[tuple[LeasedItemBase, float]], extensions: Sequence[Extension]
) -> None:
    """Note that this call failed. The server may have taken it."""
    for (item, _), extension in zip(leases, extensions, strict=True):
        item.hold.extension_ended(extension)


class HeartbeatSchedule:
    """Which leases to extend and when. Each item is extended three times in a lease; all that are due, in one call."""

    def __init__(self) -> None:
        self._next: dict[LeasedItemBase, tuple[float, float]] = {}
        """When to extend which item, and the end of the lease from which that was reckoned."""

    @property
    def any(self) -> bool:
        """True if there is anything to extend."""
        return bool(self._next)

    def add(self, item: LeasedItemBase, now: float) -> float:
        """Start to extend an item; returns when for the first time."""
        # counted from the lease, not from now: of many items leased at once, some start late
        hold = item.hold
        held_until = now + hold.secs if hold.held_until is None else hold.held_until
        hold.held_until = held_until
        first = now if hold.in_doubt else held_until - hold.secs + until_next(hold.secs)
        self._next[item] = (first, held_until)
        return first

    def drop(self, item: LeasedItemBase) -> None:
        """Extend an item no longer."""
        self._next.pop(item, None)

    def pause(self, now: float) -> float | None:
        """Seconds until the next beat; None when there is nothing to extend."""
        self._synchronize(now)
        if not self._next:
            return None
        return max(0.0, min(at for at, _ in self._next.values()) - now)

    def due(self, now: float) -> list[tuple[LeasedItemBase, float]]:
        """Return what to extend now: what is due now or `soon`, so that beats come together."""
        self._synchronize(now)
        due = [item for item, (at, _) in self._next.items() if at - now <= soon(item.hold.secs)]
        return [(item, item.hold.secs) for item in due[:MAX_ENTRIES]]

    def record_replies(
        self,
        leases: Sequence[tuple[LeasedItemBase, float]],
        extensions: Sequence[Extension],
        answers: Sequence[float | None],
        now: float,
    ) -> None:
        """Take in the answers to what was due."""
        for (item, _), extension, deadline in zip(leases, extensions, answers, strict=True):
            if deadline is None and (item.hold.ending or item.hold.ended):  # it crossed the item's own end
                item.hold.extension_ended(extension)
            else:
                item.hold.extended(extension, deadline)
            if deadline is None:
                self.drop(item)
            elif item in self._next:
                self.add(item, now)

    def record_failure(self, leases: Sequence[tuple[LeasedItemBase, float]], now: float) -> None:
        """The call failed: try again soon, three times before the lease would end."""
        for item, lease_secs in leases:
            if item in self._next:
                self._next[item] = (now + until_again(lease_secs), self._next[item][1])

    def _synchronize(self, now: float) -> None:
        """Drop what was ended through another queue object, and reckon anew where its user has extended an item."""
        for item, (_, held_until) in list(self._next.items()):
            if item.hold.ended:
                self.drop(item)
            elif item.hold.in_doubt or item.hold.held_until != held_until:
                self.add(item, now)
