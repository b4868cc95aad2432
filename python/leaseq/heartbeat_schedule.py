"""When the leases that this process holds are extended. No input or output."""

from collections.abc import Sequence

from leaseq._scripts import MAX_ENTRIES
from leaseq.flows import REPLY_GRACE
from leaseq.item import LeasedItemBase


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


class HeartbeatSchedule:
    """Which leases to extend and when. Each item is extended three times in a lease; all that are due, in one call."""

    def __init__(self) -> None:
        self._next: dict[LeasedItemBase, tuple[float, float]] = {}
        """When to extend which item, and the time from which that was reckoned."""

    @property
    def any(self) -> bool:
        """True if there is anything to extend."""
        return bool(self._next)

    def add(self, item: LeasedItemBase, now: float) -> float:
        """Start to extend an item; returns when for the first time."""
        # counted from the lease, not from now: of many items leased at once, some start late
        since = now if item.hold.counts_from is None else item.hold.counts_from
        item.hold.counts_from = since
        first = since + until_next(item.hold.secs)
        self._next[item] = (first, since)
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
        self, leases: Sequence[tuple[LeasedItemBase, float]], answers: Sequence[float | None], now: float
    ) -> None:
        """Take in the answers to what was due."""
        for (item, lease_secs), deadline in zip(leases, answers, strict=True):
            if deadline is not None or not (
                item.hold.ending or item.hold.ended
            ):  # else it crossed the item's own end
                item.hold.extended(deadline, lease_secs, now)
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
        for item, (_, since) in list(self._next.items()):
            if item.hold.ended:
                self.drop(item)
            elif item.hold.counts_from != since:
                self.add(item, now)
