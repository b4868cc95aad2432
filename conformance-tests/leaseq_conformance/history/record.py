"""The record of a run, and its file: JSON lines, one for each call, command and execution."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from leaseq_conformance.adapter_protocol import b64, unb64

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1


@dataclass
class Call:
    """A call that an actor made of its client.

    Attributes:
        number: counts up in the order in which calls started.
        args: as the adapter was sent them.
        `begin`: nanoseconds on the harness's clock, before the adapter was asked.
        end: after it answered; None where it never did, since it was killed.
        answer: the adapter's answer without its id: `{"ok": ...}` or `{"error": ...}`; None without one.
        fault: what was done to it, such as "drop after"; empty for nothing.
    """

    number: int
    actor: str
    method: str
    args: dict[str, Any]
    begin: int
    end: int | None = None
    answer: dict[str, Any] | None = None
    fault: str = ""

    @property
    def lost(self) -> bool:
        """True if its effect is unknown: there is no answer, or an error that says so."""
        return self.answer is None or ("error" in self.answer and not self.answer["error"]["definite"])


@dataclass
class Sent:
    """A call of a script as it came through the fault proxy.

    Attributes:
        number: the order in which the fault proxy saw commands.
        call: the number of the call of the same actor during which it came.
        keys: without the queue's prefix.
        passed: whether the server got it.
        reply: what the server answered, decoded; None where it did not, or the connection was cut before.
        error: an error reply's text, in place of `reply`.
        delivered: whether the reply went on to the client.
    """

    number: int
    actor: str
    call: int
    script: str
    keys: list[str]
    argv: list[bytes]
    passed: bool
    reply: Any = None
    error: str | None = None
    delivered: bool = False


@dataclass
class Ran:
    """A call of a script as the server ran it; their order in a history is the server's."""

    script: str
    keys: list[str]
    argv: list[bytes]


@dataclass
class Left:
    """An item that is there at the end."""

    where: str
    data: bytes
    attempt: int
    token: int


@dataclass
class History:
    """A run.

    Attributes:
        seed: what it was drawn from.
        `began`, `ended`: the server's time before and after all of it, microseconds.
        ran: executions in the server's order.
        left: the items that are there at the end, by their ids.
        complaints: what could not be recorded, such as an adapter that broke its protocol; with one, nothing is judged.
    """

    seed: int
    began: int = 0
    ended: int = 0
    calls: list[Call] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    ran: list[Ran] = field(default_factory=list)
    left: dict[str, Left] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write it as JSON lines."""
        lines: list[dict[str, Any]] = [
            {
                "format": FORMAT,
                "seed": self.seed,
                "began": self.began,
                "ended": self.ended,
                "complaints": self.complaints,
            }
        ]
        lines += [{"call": asdict(call)} for call in self.calls]
        lines += [{"sent": asdict(sent)} for sent in self.sent]
        lines += [{"ran": asdict(ran)} for ran in self.ran]
        lines += [{"left": {"id": item_id, **asdict(left)}} for item_id, left in self.left.items()]
        path.write_text("".join(json.dumps(plain(line)) + "\n" for line in lines))

    @classmethod
    def read(cls, path: Path) -> History:
        """Read what `write` wrote.

        Raises:
            ValueError: it has another format.
        """
        head, *lines = [restored(json.loads(line)) for line in path.read_text().splitlines()]
        if head.pop("format", None) != FORMAT:
            raise ValueError(f"{path} is no history of format {FORMAT}")
        history = cls(**head)
        for line in lines:
            ((kind, fields),) = line.items()
            if kind == "call":
                history.calls.append(Call(**fields))
            elif kind == "sent":
                history.sent.append(Sent(**fields))
            elif kind == "ran":
                history.ran.append(Ran(**fields))
            else:
                item_id = fields.pop("id")
                history.left[item_id] = Left(**fields)
        return history


def plain(value: Any) -> Any:
    """A value as JSON takes it, with bytes in the form of the adapter protocol."""
    if isinstance(value, bytes):
        return b64(value)
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def restored(value: Any) -> Any:
    """Return what `plain` made of a value."""
    if isinstance(value, dict):
        return (
            unb64(value)
            if value.keys() == {"$b64"}
            else {name: restored(part) for name, part in value.items()}
        )
    return [restored(part) for part in value] if isinstance(value, list) else value
