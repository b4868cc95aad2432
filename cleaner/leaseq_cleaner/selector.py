"""Which queues a cleaner looks after: by name, by pattern."""

import fnmatch
from collections.abc import Iterable

from leaseq.errors import BadArgumentError, LeaseqError
from leaseq.keys import QueueKeys, RegisteredQueue

ALL = "*"
"""Every queue of the registry."""

_WILD = set("*?[")


class QueueSelector:
    """Queues by name, and patterns, which the registry is searched for.

    Each of `queues` is NAME, or GROUP/NAME where the group is not the name. With one of `*?[` in it, it is a pattern as
    the shell has them, and one without a group fits queues of every group. Raises BadArgumentError.
    """

    def __init__(self, queues: Iterable[str] = (ALL,)) -> None:
        self.named: list[RegisteredQueue] = []
        self._patterns: list[tuple[str, str]] = []
        for text in [queues] if isinstance(queues, str) else queues:
            self._add(text)
        if not self.named and not self._patterns:
            raise BadArgumentError("no queues: name one, or '*' for all that are in the registry")

    def _add(self, text: str) -> None:
        group, slash, name = text.rpartition("/")
        if set(text) & _WILD:
            if not name or (slash and not group):
                raise BadArgumentError(f"{text!r} is no pattern: write NAME or GROUP/NAME, with * ? or []")
            self._patterns.append((group or ALL, name))
            return
        try:
            keys = QueueKeys(name, group if slash else None)
        except LeaseqError as error:
            raise BadArgumentError(f"{text!r} names no queue (NAME or GROUP/NAME): {error}") from None
        self.named.append(RegisteredQueue(keys.name, keys.group))

    @property
    def asks_the_registry(self) -> bool:
        """True if there are patterns."""
        return bool(self._patterns)

    def fits(self, queue: RegisteredQueue) -> bool:
        """Return whether a queue of the registry is one of them."""
        return any(
            fnmatch.fnmatchcase(queue.group, group) and fnmatch.fnmatchcase(queue.name, name)
            for group, name in self._patterns
        )

    def has(self, queue: RegisteredQueue) -> bool:
        """Return whether a queue is one of them, by name or by a pattern."""
        return queue in self.named or self.fits(queue)


def label(queue: RegisteredQueue) -> str:
    """A queue as `QueueSelector` takes it."""
    return queue.name if queue.name == queue.group else f"{queue.group}/{queue.name}"
