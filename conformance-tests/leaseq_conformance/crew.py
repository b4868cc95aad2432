"""Actors behind the gate, for one run: adapter processes are kept from case to case, as their start is what costs time.

A case takes a shift: names for actors, which the crew finds processes for, and queue names that no other case has. When
it ends, an actor that has nothing left to answer goes back to the crew; one that was killed or still waits is ended.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Final, Self

from leaseq._scripts import SCRIPTS
from leaseq_conformance.actor import Actor, ActorError, Answer, Pending
from leaseq_conformance.gate import Gate

if TYPE_CHECKING:
    from types import TracebackType

    from leaseq_conformance.gate import Door
    from leaseq_conformance.server import Server

NAMES: Final = {script.sha1: script.name for script in SCRIPTS}


class Hand:
    """An adapter process and its door."""

    def __init__(self, door: Door, actor: Actor) -> None:
        self.door = door
        self.actor = actor
        self.opened: set[str] = set()
        self.pending: list[Pending] = []
        self.killed = False
        self.read = 0
        """How many lines of its transcript earlier cases have taken."""
        door.kill = self.kill

    def kill(self) -> None:
        """Kill its process with SIGKILL."""
        self.killed = True
        self.actor.kill()

    def lines(self) -> list[str]:
        """What it said and was told since the last look."""
        new = self.actor.transcript[self.read :]
        self.read += len(new)
        return [f"{self.door.actor} {line}" for line in new]

    def idle(self) -> bool:
        """Whether it owes no answer and its process lives."""
        return not self.killed and all(call.done for call in self.pending) and self.actor.fault is None


class Crew:
    """The adapter processes of a run, and the gate that they go through."""

    def __init__(self, server: Server, adapter: tuple[str, ...]) -> None:
        self.server = server
        self.gate = Gate(server.address, NAMES)
        self.adapter = adapter
        self._idle: list[Hand] = []
        self._numbers = itertools.count(1)

    def hand(self, name: str) -> Hand:
        """A process for an actor of this name: an idle one, or a new one. Raises ActorError."""
        if self._idle:
            hand = self._idle.pop()
            hand.door.actor = name
        else:
            door = self.gate.door(f"door {next(self._numbers)}")
            door.actor = name
            hand = Hand(door, Actor(name, self.adapter, self.server.door_url(door)))
            self.gate.learn(hand.actor.hello["scripts"])
        return hand

    def give_back(self, hand: Hand) -> None:
        """Keep a process for the next case, or end it."""
        if not hand.idle():
            self.dismiss(hand)
            return
        hand.pending.clear()
        for handle in sorted(hand.opened):
            hand.actor.close(handle)
        hand.opened.clear()
        hand.lines()
        self._idle.append(hand)

    def dismiss(self, hand: Hand) -> None:
        """End a process for good, whatever it is at."""
        hand.kill()
        with contextlib.suppress(ActorError):  # what is wrong with it was said when it was spoken to
            hand.actor.end()

    def dismiss_idle(self) -> None:
        """End those that no case has: after a restart of the server their connections are gone."""
        while self._idle:
            self.dismiss(self._idle.pop())

    def shift(self) -> Shift:
        """What one case works with."""
        return Shift(self, next(self._numbers))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.dismiss_idle()
        self.gate.__exit__(kind, error, trace)


class Shift:
    """The actors and queues of one case.

    Args:
        number: what makes the names of its queues its own.
    """

    def __init__(self, crew: Crew, number: int) -> None:
        self.crew = crew
        self.gate = crew.gate
        self.server = crew.server
        self.log: list[str] = []
        self._number = number
        self._hands: dict[str, Hand] = {}
        self._groups: dict[str, str] = {}

    def declare(self, handle: str, group: str | None = None) -> None:
        """Say which group a queue is of; by itself it is its own."""
        self._groups[handle] = f"{group or handle}-{self._number}"

    def queue_name(self, handle: str) -> str:
        """The name of a queue on the server."""
        return f"{handle}-{self._number}"

    def prefix(self, handle: str) -> str:
        """What the keys of a queue begin with."""
        group = self._groups.get(handle, self.queue_name(handle))
        return f"leaseq:{{{group}}}:{self.queue_name(handle)}:"

    def hand(self, name: str, *handles: str) -> Hand:
        """The process of an actor, started if need be, with these queues opened. Raises ActorError."""
        hand = self._hands.get(name)
        if hand is None:
            hand = self._hands[name] = self.crew.hand(name)
        for handle in handles:
            if handle not in hand.opened:
                name_on_server = self.queue_name(handle)
                group = self._groups.get(handle)
                hand.actor.open(handle, name_on_server, None if group == name_on_server else group)
                hand.opened.add(handle)
        return hand

    def start(self, name: str, handle: str | None, method: str, args: dict[str, object]) -> Pending:
        """Begin a call of an actor. `handle` None is for `lease_any`, whose queues are in its arguments."""
        queues = args.get("queues", [])
        assert isinstance(queues, list)
        handles = [handle] if handle else [str(queue) for queue in queues]
        hand = self.hand(name, *handles)
        pending = hand.actor.start(handle, method, **args)
        hand.pending.append(pending)
        return pending

    def call(
        self, name: str, handle: str | None, method: str, patience: float, args: dict[str, object]
    ) -> Answer:
        """Make a call and wait for its answer."""
        return self.start(name, handle, method, args).answer(patience)

    def kill(self, name: str) -> None:
        """Kill an actor with SIGKILL; the next call under its name is a new process's."""
        hand = self._hands.pop(name)
        hand.kill()
        self.log += hand.lines()
        self.crew.dismiss(hand)

    def close(self, name: str, handle: str) -> Answer:
        """Close a queue of an actor."""
        hand = self._hands[name]
        hand.opened.discard(handle)
        return hand.actor.close(handle)

    def restart_server(self) -> None:
        """Restart the server; processes without a case have connections that are gone, and are ended."""
        self.server.restart()
        self.crew.dismiss_idle()

    def note(self, line: str) -> None:
        """Add what was said since the last note, then this line, to the log."""
        for hand in self._hands.values():
            self.log += hand.lines()
        self.log.append(line)

    def transcript(self) -> tuple[str, ...]:
        """All that was said: what actors were told and answered step by step, then the commands that they sent."""
        self.note("commands as the gate saw them:")
        return (*self.log, *self.gate.transcript())

    def __enter__(self) -> Self:
        self.gate.clear()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.clear()
        for hand in self._hands.values():
            if kind is None:
                self.crew.give_back(hand)
            else:
                self.crew.dismiss(hand)
        self._hands.clear()
