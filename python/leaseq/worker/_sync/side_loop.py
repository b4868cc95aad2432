# Generated from _aio/side_loop.py by tools/unasync.py: do not edit.
"""The base of loops that run beside the main loop of a worker."""

from leaseq._sync import concurrency


class SideLoop:
    """Sleeps on a wake_event until there is something to do, or it is stopped."""

    def __init__(self) -> None:
        self._wake_event = concurrency.WakeEvent()
        self._over = False

    def run(self) -> None:
        """Work until the end."""
        raise NotImplementedError

    def end(self) -> None:
        """Let `run` return."""
        self._over = True
        self._wake_event.set()
