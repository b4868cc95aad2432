"""The heartbeat of the items that are worked on."""

from leaseq import commands, flows
from leaseq._aio import io
from leaseq._aio.transport import Transport
from leaseq.errors import LeaseqError
from leaseq.item import LeasedItemBase
from leaseq.keys import QueueKeys


class Heart:
    """Extends the items that are worked on, all in one call, in the background while there are any."""

    def __init__(self, transport: Transport, keys: QueueKeys) -> None:
        self._transport = transport
        self._keys = keys
        self._beats = flows.Beats()
        self._bell = io.Bell()
        self._guard = io.Guard()
        self._running = False
        self._over = False

    def add(self, item: LeasedItemBase) -> None:
        """Begin to extend an item."""
        with self._guard:
            if self._over or item._ended or item._lost:
                return
            # counted from the lease, not from now: of many items leased at once, some begin late
            self._beats.add(item, item._lease_secs, item._since or io.now())
            begin = not self._running
            self._running = True
        if begin:
            self._transport.background.begin(self._run)
        else:
            self._bell.ring()

    def drop(self, item: LeasedItemBase) -> None:
        """Extend an item no longer."""
        with self._guard:
            self._beats.drop(item)

    async def end(self) -> None:
        """Extend nothing any longer."""
        with self._guard:
            self._over = True
        self._bell.ring()

    async def _run(self) -> None:
        while True:
            with self._guard:
                pause = self._beats.pause(io.now())
            # an idle heart waits a little for the next item before it stops
            await self._bell.wait(flows.WAIT_CAP if pause is None else pause)
            with self._guard:
                if self._over:
                    return
                leases = self._beats.due(io.now())
                if pause is None and self._beats.pause(io.now()) is None:
                    self._running = False
                    return
            if leases:
                await self._beat(leases)

    async def _beat(self, leases: list[tuple[LeasedItemBase, float]]) -> None:
        try:
            answers = await self._transport.run(commands.extend(self._keys, leases))
        except LeaseqError:
            with self._guard:
                self._beats.failed(leases, io.now())
        else:
            with self._guard:
                self._beats.heard(leases, answers, io.now())
