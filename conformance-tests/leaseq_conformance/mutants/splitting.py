"""Clients that send calls in the wrong parts or to the wrong place, or put what they are answered together wrongly."""

from __future__ import annotations

from typing import Any

from leaseq import flows
from leaseq._scripts import MAX_ENTRIES
from leaseq._sync import io, outcomes
from leaseq_conformance.mutants.registry import everywhere, mutant, patch


@mutant("LQ-CALL-8", "wire/add-257")
def chunks_out_of_order() -> None:
    """Sends the last part of a long list first."""
    own = flows.chunks
    everywhere(own, lambda members, size=lambda _: 0: list(own(members, size))[::-1])


@mutant("LQ-OUTCOME-9", "wire/outcome-short-reply")
def short_reply_is_all() -> None:
    """Takes a reply of outcome that ends early for all there is, and makes up the rest."""

    def told(self: outcomes.Outcomes, ids: Any) -> Any:
        from leaseq import commands
        from leaseq.results import Outcome

        wanted = list(ids)[:MAX_ENTRIES]
        first = self._transport.run(commands.outcome(self._keys, wanted))
        return first + [Outcome(item_id, "absent", 0, 0, 0, 0, b"") for item_id in wanted[len(first) :]]

    patch(outcomes.Outcomes, "outcomes", told)


@mutant("LQ-CLIENT-5", "cluster/calls-go-to-the-primary")
def asks_a_replica() -> None:
    """Spares the primary of a cluster, and sends its calls to a replica that it told to answer."""
    own = io.Cluster.borrow

    def borrow(self: io.Cluster, key: str, redirection: Any) -> io.Wire:
        if redirection is not None:
            return own(self, key, redirection)
        wire = self._wire(self._client.get_node_from_key(key, replica=True))
        wire.send("READONLY")
        wire.read()
        return wire

    patch(io.Cluster, "borrow", borrow)


@mutant("LQ-FAIL-3", "sweep/add-kill-before")
def in_two_steps() -> None:
    """Notes among the delayed items what it is about to do, makes the call, and takes the note back: three steps, not one."""
    send, read = io.Wire.send, io.Wire.read
    noted: dict[io.Wire, str] = {}

    def sending(self: io.Wire, *command: Any) -> None:
        if command[0] == "EVALSHA" and not self.owed and self not in noted:
            group, _, rest = str(command[3]).partition("}:")
            noted[self] = f"{group}}}:{rest.partition(':')[0]}:delayed"
            send(self, "ZADD", noted[self], 2**53 - 1, "about-to")
            read(self)
        send(self, *command)

    def reading(self: io.Wire, seconds: float | None = None) -> Any:
        reply = read(self, seconds)
        if not self.owed and self in noted:
            send(self, "ZREM", noted.pop(self), "about-to")
            read(self)
        return reply

    patch(io.Wire, "send", sending)
    patch(io.Wire, "read", reading)
