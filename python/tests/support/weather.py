"""A network link whose faults come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from leaseq_conformance.fault_proxy import Listener


class Weather:
    """A proxy that has its moods."""

    def __init__(self, proxy: Listener, chance: random.Random) -> None:
        self._proxy = proxy
        self._chance = chance

    def change(self) -> None:
        """Another mood: fine, delayed, cut, half open (what one side says is swallowed), a reply cut in the middle."""
        self.clear()
        mood = self._chance.choice(("fine", "delay", "cut", "deaf", "mute", "torn", "refuse"))
        if mood == "delay":
            self._proxy.latency = self._proxy.jitter = 0.02
        elif mood == "cut":
            self._proxy.reset()
        elif mood == "deaf":
            self._proxy.discard_commands = True
        elif mood == "mute":
            self._proxy.discard_replies = True
        elif mood == "torn":
            self._proxy.cut_replies_after = self._chance.randrange(200)
        elif mood == "refuse":
            self._proxy.refuse = True

    def clear(self) -> None:
        """Fine weather: what was swallowed is gone, and those connections with it."""
        swallowed = self._proxy.discard_commands or self._proxy.discard_replies
        self._proxy.latency = self._proxy.jitter = 0.0
        self._proxy.discard_commands = self._proxy.discard_replies = self._proxy.refuse = False
        self._proxy.cut_replies_after = None
        if swallowed and self._chance.random() < 0.7:
            self._proxy.reset()  # otherwise clients have to notice it alone
