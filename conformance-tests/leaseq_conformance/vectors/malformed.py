"""Values that no script writes, for each kind of key: refused where nothing can be made of them."""

from __future__ import annotations

import struct
from typing import Any, Final

from leaseq_conformance.model.base import END
from leaseq_conformance.model.codec import Outcome
from leaseq_conformance.vectors.builder import START

COUNTERS: Final = (
    *(b"promoted", b"reclaimed", b"released", b"died", b"removed"),
    *(b"dropped", b"expired", b"purged", b"revived"),
)


NO_COUNTS: Final = (
    *(
        b"x",
        b"",
        b"9223372036854775807",
        b"9223372036854775808",
        b"18446744073709551617",
        b"10000000000000000000",
    ),
    *(
        b"1.5",
        b"1.0",
        b"1e3",
        b"0x10",
        b"01",
        b"+1",
        b" 1",
        b"1 ",
        b"nan",
        b"inf",
        b"-0",
        b"-1",
        b"-9223372036854775808",
    ),
)
"""What `stats` reads as 0."""
COUNTS: Final = (1, 10, 2**53, 10**17, 10**18, 2**63 - 1025, 2**63 - 1024, 2**63 - 2)
"""What it reads as a number, more exactly than a double or not."""


def record(version: int = 1, options: int = 0, created: float = START - 1, current: float = START) -> bytes:
    """The first 22 bytes of a record."""
    return struct.pack("<BBIdd", version, options, 1, current, created)


def tail(expires: float = 0) -> bytes:
    """The last 17 bytes of a record."""
    return struct.pack("<bHHId", 0, 0, 0, 0, expires)


def state(version: int = 1, flags: int = 0, clock: float = START, next_due: float = 0) -> bytes:
    """44 bytes."""
    return struct.pack("<BBddI", version, flags, clock, next_due, 9) + bytes(22)


BAD_RECORDS: Final[dict[str, bytes]] = {
    "short": record()[:21],
    "empty": b"",
    "a byte too long": record() + b"\0",
    "a tail that is not said": record() + tail(),
    "a tail that is missing": record(options=1),
    "a tail that is short": record(options=1) + tail()[:-1],
    "of version 2": record(version=2),
    "of version 2 with a tail": record(version=2, options=1) + tail(),
    "of version 0": record(version=0),
    "options 2": record(options=2) + tail(),
    "options 4": record(options=4) + tail(),
    "options 8": record(options=8) + tail(),
    "options 9": record(options=9) + tail(),
    "created below 0": record(created=-1),
    "created no number": record(created=float("nan")),
    "current below 0": record(current=-1),
    "current no number": record(current=float("nan")),
    "with a tail, created below 0": record(options=1, created=-1) + tail(),
    "with a tail, current no number": record(options=1, current=float("nan")) + tail(),
}
TELLING: Final = (
    *(
        "short",
        "a byte too long",
        "a tail that is not said",
        "a tail that is missing",
        "a tail that is short",
        "of version 2",
    ),
    *(
        "of version 0",
        "of version 2 with a tail",
        "options 2",
        "options 9",
        "created below 0",
        "current below 0",
    ),
    *("with a tail, created below 0", "with a tail, current no number"),
)
"""One for each way in which a record can be wrong."""
BAD_STATES: Final[dict[str, bytes]] = {
    "short": state()[:43],
    "long": state() + b"\0",
    "empty": b"",
    "of version 2": state(version=2),
    "of version 0": state(version=0),
    "flag 4": state(flags=4),
    "flag 255": state(flags=255),
}
"""`deep_clean` refuses these too: they may be of a newer version."""
WRONG_STATES: Final[dict[str, bytes]] = {
    "clock of 2060": state(clock=END),
    "clock far ahead": state(clock=2.0**60),
    "clock no number": state(clock=float("nan")),
    "bound below 0": state(next_due=-1),
    "bound no number": state(next_due=float("nan")),
}
"""These it repairs."""
BAD_OUTCOMES: Final[dict[str, bytes]] = {
    "short": Outcome(1, 1, START, START - 1, START, b"").encode()[:29],
    "of version 2": b"\2" + Outcome(1, 1, START, START - 1, START, b"").encode()[1:],
    "of kind 3": Outcome(3, 1, START, START - 1, START, b"r").encode(),
    "of kind 0": Outcome(0, 1, START, START - 1, START, b"r").encode(),
}


def wrong_type(key: str) -> Any:
    """A value of another type than the key has."""
    return (
        b"of another type" if key in {"wake", "room"} or key.startswith("result:") else [b"of another type"]
    )


BAD_EXTRAS: Final = (b"", b"\0", b"\1", b"\0\0", b"\0\0\0", b"\5\0why")
"""What an extra may have become; in the last one the error is shorter than it says."""
STOPPING: Final = (
    "of version 2",
    "of version 2 with a tail",
    "of version 0",
    "options 2",
    "options 4",
    "options 8",
)
"""Records that may be of a newer version: a pass ends there."""
