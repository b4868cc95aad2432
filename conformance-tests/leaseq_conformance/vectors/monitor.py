"""Listens with MONITOR to what the calls of vectors touch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Self

from leaseq_conformance.vectors.executor import encoded, passed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import redis

    from leaseq_conformance.vectors.compare import Run

INNER: Final = re.compile(rb'\[\d+ lua\] "(\w+)" "((?:[^"\\]|\\.)*)"(?: "((?:[^"\\]|\\.)*)")?')


class Watch:
    """Listens with MONITOR to what scripts do."""

    def __init__(self, client: redis.Redis) -> None:
        self._monitor: Any = client.monitor()  # type: ignore[no-untyped-call]
        self.link: Any = None

    def __enter__(self) -> Self:
        self._monitor.__enter__()
        self.link = self._monitor.connection
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._monitor.__exit__(*exc_info)

    def undeclared(self, runs: Sequence[Run]) -> list[str]:
        """The keys that the calls of these runs, all that were made since, touched and did not pass."""
        found = []
        for run in runs:
            known = {_escaped(encoded(name)) for name in passed(run.vector)}
            known |= {key.split(b'\\"')[0] for key in known}  # MONITOR of Valkey 8.1 leaves a quote as it is
            undeclared_keys = {key for _ in range(2) for key in self._touched()} - known
            found += [f"{run.vector.name}: {key.decode('latin-1')}" for key in sorted(undeclared_keys)]
        return found

    def _touched(self) -> Iterator[bytes]:
        """The keys of one call."""
        within = False
        while True:
            line: bytes = self.link.read_response()
            if line.endswith(b'"the call starts"'):
                within = True
            elif line.endswith(b'"the call is over"'):
                return
            elif within and (found := INNER.search(line[:4096])):
                command, first, second = found.groups()
                if command.upper() != b"TIME":
                    yield second if command.upper() == b"MEMORY" else first


def _escaped(key: bytes) -> bytes:
    """A key as MONITOR writes it."""
    plain = {10: b"\\n", 13: b"\\r", 9: b"\\t", 7: b"\\a", 8: b"\\b", 34: b'\\"', 92: b"\\\\"}
    return b"".join(
        plain.get(byte) or (bytes([byte]) if 32 <= byte < 127 else b"\\x%02x" % byte) for byte in key
    )
