"""The base of loops that run beside the main loop of a worker."""

from leaseq._aio import concurrency


class SideLoop:
    """Sleeps on a wake_event until there is something to do, or it is stopped."""

    def __init__(self) -> None:
        self._wake_event = concurrency.WakeEvent()
        self._over = False

    async def run(self) -> None:
        """Work until the end."""
        raise NotImplementedError

    def end(self) -> None:
        """Let `run` return."""
        self._over = True
        self._wake_event.set()
