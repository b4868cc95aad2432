"""Plans of a step: the calls that an actor is expected to send, and the replies to them. Each call stops at the proxy."""

import operator
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final

from leaseq_conformance import resp
from leaseq_conformance.fault_proxy import Action, Breakpoint, Command, DeferredReply
from leaseq_conformance.fault_proxy.command import BLOCKS
from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.wire import arguments, notation
from leaseq_conformance.wire.notation import Prefix

CALLS: Final = ("EVALSHA", "EVAL", "BLPOP", "BLMOVE")
"""Commands that are compared in every case. Others, such as SADD of the registry, are compared if the case watches them."""
PROBE: Final = (b"EVAL", b"return 1", b"0")
"""A call that a client may send after any error, to find out if the server runs scripts (LQ-ERROR-6). The server answers it."""
MAX_MEANWHILE: Final = 20
"""The number of extra calls that a client may make before the expected one: a machine that stalls makes it late, not wrong."""
NIL: Final = b"*-1\r\n"
SHORTEST_BLOCK: Final = 0.01

Exchange = dict[str, Any]
Interrupt = Callable[[str], None]
"""Ends the call of the step as a user would; returns when the client has started to."""


class SilentReplies:
    """The replies of a case that do not come, by the number of their connection, and the names of connections.

    Those of blocks come after all, as nil: with the reply to what is sent behind the block, or when the case is over.
    """

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self._blocks: defaultdict[int, list[DeferredReply]] = defaultdict(list)
        self._given_up: set[int] = set()

    def add(self, command: Command) -> DeferredReply:
        """This command is not answered for now."""
        reply = DeferredReply()
        if command.name in BLOCKS:
            self._blocks[command.connection].append(reply)
        else:
            self._given_up.add(command.connection)
        return reply

    def has_block(self, connection: int) -> bool:
        """Return whether a block on that connection is not over."""
        return connection in self._blocks

    def misuse(self, command: Command) -> str:
        """Return what is wrong with sending it on its connection; empty if nothing is."""
        if command.connection in self._given_up:
            return "on a connection that owes a reply which it has given up"
        if command.name in BLOCKS and self.has_block(command.connection):
            return "on a connection whose last block is not over"
        return ""

    def end_blocks(self, connection: int) -> None:
        """The time of the blocks on that connection is over."""
        for reply in self._blocks.pop(connection, []):
            reply.give(NIL)

    def end(self) -> None:
        """The case is over, and what its client still waits for ends."""
        for connection in list(self._blocks):
            self.end_blocks(connection)


class Plan(Breakpoint):
    """The exchanges of one step, in one or several orders.

    It stands until the next one does: what a step leaves optional may come in the background, when the step is over.
    """

    def __init__(
        self,
        actor: str,
        sequences: dict[str, list[Exchange]],
        prefix: Prefix,
        port: int,
        silent: SilentReplies,
        interrupt: Interrupt = lambda _: None,
        watched: Collection[str] = CALLS,
        late: Iterable[Exchange] = (),
    ) -> None:
        super().__init__(actor, None, "before", "resume", 0)
        self._interrupt = interrupt
        self._watched = watched
        self._last = time.monotonic()
        self.wrong = ""
        self.is_wrong_block = False
        self._sequences = {name: list(sequence) for name, sequence in sequences.items()}
        self._allowed: dict[str, list[Exchange]] = {name: [] for name in sequences}
        self._left = MAX_MEANWHILE
        self._late = list(late)
        self._prefix = prefix
        self._port = port
        self._actions: dict[int, Action] = {}
        self._together: defaultdict[str, list[tuple[DeferredReply, bytes]]] = defaultdict(list)
        self._chosen: set[str] = set()
        self._seen: Counter[str] = Counter()
        self._silent = silent
        self._done = threading.Event()
        self._check_done()

    def matches(self, command: Command) -> bool:
        """Every call of the actor; the fault proxy asks for one command at a time."""
        if command.client != self.client or command.name not in self._watched:
            return False
        if notation.is_of_another_case(command, self._prefix):
            return False
        if command.arguments == PROBE and not self._names_probe():
            return False
        self._actions[command.number] = self._action_for(command)
        self._check_done()
        return True

    def _names_probe(self) -> bool:
        return any(exchange.get("command") == "EVAL" for _, exchange in self._candidates())

    def stop(self, command: Command) -> Action:
        """Return the action for a command."""
        return self._actions.pop(command.number)

    def finished(self, secs: float) -> bool:
        """Wait until all that was expected has come, or something else has."""
        return self._done.wait(secs)

    def missing(self) -> list[str]:
        """Return what has not come."""
        return [
            f"{name} again, after {self._seen[name]} of them" if self._seen[name] else name
            for sequence in self._sequences.values()
            for exchange in sequence
            if not self._may_be_left_out(exchange)
            for name in [_name(exchange)]
        ]

    def _may_be_left_out(self, exchange: Exchange) -> bool:
        return "optional" in exchange or exchange.get("one_of") in self._chosen

    def optional(self) -> list[Exchange]:
        """Return what may still come, once nothing is missing."""
        left = (exchange for sequence in self._sequences.values() for exchange in sequence)
        return [*self._late, *(exchange for exchange in left if "one_of" not in exchange)]

    def blocked(self) -> bool:
        """Return whether every block that was expected has come."""
        return not any("block" in exchange for sequence in self._sequences.values() for exchange in sequence)

    def _check_done(self) -> None:
        if self.wrong or not self.missing():
            self._done.set()

    def _action_for(self, command: Command) -> Action:
        if self.wrong:
            return "disconnect"
        misuse = self._silent.misuse(command)
        if misuse:
            self.wrong = f"the client sent {_shown(command)} {misuse}"
            return "disconnect"
        why: list[str] = []
        for sequence, exchange in self._candidates():
            difference = self._difference(command, exchange)
            if difference:
                why.append(difference)
                continue
            if sequence is not None:
                late = self._out_of_time(exchange)
                if late:
                    self.wrong = late
                    return "disconnect"
                place = self._sequences[sequence].index(exchange)
                self._sequences[sequence] = self._sequences[sequence][place + 1 :]
                self._allowed[sequence] = exchange.get("meanwhile", [])
                self._seen[_name(exchange)] += 1
                self._chosen |= {exchange["one_of"]} if "one_of" in exchange else set()
            elif exchange in self._late:
                self._late.remove(exchange)
            else:
                self._left -= 1
            return self._answer(command, exchange)
        self.is_wrong_block = command.name in BLOCKS
        self.wrong = f"the client sent {_shown(command)}; " + (why[0] if why else "nothing more was expected")
        return "disconnect"

    def _candidates(self) -> Iterator[tuple[str | None, Exchange]]:
        """Yield the exchanges that may come now: the next of each order, those behind optional ones, and those that may come at any time.

        What a step before left optional comes ahead of what is optional in this one: it may be what is late.
        """
        optional: list[tuple[str | None, Exchange]] = []
        for name, sequence in self._sequences.items():
            for exchange in sequence:
                if exchange.get("one_of") in self._chosen:
                    continue
                if "optional" not in exchange:
                    yield name, exchange
                    break
                optional.append((name, exchange))
        yield from ((None, exchange) for exchange in self._late)
        yield from optional
        if self._left:
            for allowed in self._allowed.values():
                yield from ((None, exchange) for exchange in allowed)

    def _out_of_time(self, exchange: Exchange) -> str:
        now = time.monotonic()
        since, self._last = (now - self._last) * 1000, now
        for name, is_wrong in (("least_ms", operator.lt), ("most_ms", operator.gt)):
            if name in exchange and is_wrong(since, exchange[name]):
                which = "least" if name == "least_ms" else "most"
                return f"{_name(exchange)} came after {since:.0f} ms, expected at {which} {exchange[name]}"
        return ""

    def _difference(self, command: Command, exchange: Exchange) -> str:
        others = exchange.get("other_than", ())
        if command.connection in map(self._silent.names.get, [others] if isinstance(others, str) else others):
            return f"expected {_name(exchange)} on another connection"
        if "block" in exchange:
            return self._difference_of_block(command, exchange)
        if "command" in exchange:
            if command.name != exchange["command"]:
                return f"expected {_name(exchange)}"
            wanted = [notation.argument(value, self._prefix) for value in exchange["words"]]
            sent = list(command.arguments[1:])
            return _first_difference(
                _name(exchange), wanted, sent[: len(wanted)] if "more" in exchange else sent
            )
        by = ("EVALSHA", "EVAL") if exchange["by"] == "either" else (exchange["by"],)
        if command.name not in by:
            return f"expected {_name(exchange)}"
        if exchange.get("behind") and not self._silent.has_block(command.connection):
            return f"expected {_name(exchange)} behind the block, on its connection"
        source = command.arguments[1]
        if command.name == "EVALSHA" and source != exchange["sha1"].encode():
            return f"expected {_name(exchange)}: the digest is {exchange['sha1']}, not {source!r}"
        if command.name == "EVAL" and source != SCRIPTS[exchange["script"]].source.encode():
            return f"expected {_name(exchange)}: the source is not that of the manifest"
        keys = [notation.key(name, self._prefix) for name in exchange["keys"]]
        wanted = [str(len(keys)).encode(), *keys]
        sent = list(command.arguments[2:])
        if sent[: len(wanted)] != wanted:
            return _first_difference(_name(exchange), wanted, sent[: len(wanted)])
        argv = [notation.argument(value, self._prefix) for value in notation.expanded(exchange["argv"])]
        why = arguments.difference(exchange["script"], argv, sent[len(wanted) :])
        return why and f"{_name(exchange)}: {why}"

    def _difference_of_block(self, command: Command, exchange: Exchange) -> str:
        if command.name != exchange["block"]:
            return f"expected {_name(exchange)}"
        *sent, secs = command.arguments[1:]
        wanted = [notation.argument(value, self._prefix) for value in exchange["words"]]
        difference = _first_difference(_name(exchange), wanted, sent)
        if difference:
            return difference
        least, most = exchange.get("least_secs", SHORTEST_BLOCK), exchange["most_secs"]
        try:
            fits = least <= float(secs) <= most
        except ValueError:
            fits = False
        return "" if fits else f"{_name(exchange)} is to last {least} to {most} s, not {secs!r}"

    def _answer(self, command: Command, exchange: Exchange) -> Action:
        if "connection" in exchange:
            self._silent.names[exchange["connection"]] = command.connection
        if "drop" in exchange:
            return "disconnect"
        if "silent" in exchange:
            if "then" in exchange:
                threading.Thread(target=self._interrupt, args=(exchange["then"],), daemon=True).start()
            return self._silent.add(command)
        self._silent.end_blocks(command.connection)
        if "server" in exchange:
            return "resume"
        reply = self._reply(exchange)
        if "together" in exchange:
            return self._with_others(exchange["together"], reply)
        if "then" not in exchange and "after_ms" not in exchange:
            return reply
        deferred = DeferredReply()

        def give() -> None:
            time.sleep(exchange.get("after_ms", 0) / 1000)
            if "then" in exchange:
                self._interrupt(exchange["then"])
            deferred.give(reply)

        threading.Thread(target=give, daemon=True).start()
        return deferred

    def _with_others(self, name: str, reply: bytes) -> Action:
        """A reply that comes at the same moment as the others of this name, once all these commands have come."""
        deferred = DeferredReply()
        waiting = self._together[name]
        waiting.append((deferred, reply))
        if not any(one.get("together") == name for part in self._sequences.values() for one in part):
            for one, its_reply in waiting:
                one.give(its_reply)
        return deferred

    def _reply(self, exchange: Exchange) -> bytes:
        if "error" in exchange:
            return resp.error(exchange["error"].replace("PORT", str(self._port)))
        if "raw" in exchange:
            return str(exchange["raw"]).encode()
        return resp.reply(notation.reply(exchange["reply"], self._prefix))


def _first_difference(name: str, wanted: list[bytes], sent: list[bytes]) -> str:
    for number, (one, other) in enumerate(zip(wanted, sent, strict=False), 1):
        if one != other:
            return f"{name}: word {number} is {arguments.shown(other, one)}, expected {arguments.shown(one, other)}"
    if len(wanted) != len(sent):
        return f"{name}: {len(sent)} words, expected {len(wanted)}"
    return ""


def _name(exchange: Exchange) -> str:
    if "script" in exchange:
        return f"{exchange['by']} {exchange['script']}"
    return str(exchange.get("block") or exchange["command"])


def _shown(command: Command) -> str:
    sent_bytes = b" ".join(command.keys + command.argv if command.script else command.arguments[1:])
    return f"{command.name} {command.script or ''} {arguments.shown(sent_bytes, b'')}"
