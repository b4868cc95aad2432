"""The order in which a server ran scripts, from the server's MONITOR, which a thread reads until it is ended."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from typing import TYPE_CHECKING, Any, Final, Self

import redis

from leaseq_conformance.history.record import Ran

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

LINE: Final = re.compile(rb"\d+\.\d+ \[\d+ ([^\]]*)\] (.*)", re.DOTALL)
QUOTED_ARGUMENT: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
PLAIN: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}


class Witness:
    """Reads along while its block runs; `ran` has what was run when it has ended.

    Args:
        client: for connections to the server, past every fault proxy.
        scripts: names by digest; what else is run on the queue is named by its digest.
        prefix: of the queue; other keys are none of ours.
    """

    def __init__(self, client: redis.Redis, scripts: Mapping[str, str], prefix: str) -> None:
        self.ran: list[Ran] = []
        self.fault: Exception | None = None
        self._client = client
        self._scripts = scripts
        self._prefix = prefix.encode()
        self._mark = secrets.token_hex(16)
        self._connection: Any = None
        self._thread = threading.Thread(target=self._read, name="witness", daemon=True)

    def __enter__(self) -> Self:
        self._connection = self._client.connection_pool.make_connection()
        self._connection.send_command("MONITOR")
        self._connection.read_response()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # MONITOR reports what this server ran before the mark before it reports the mark
        self._client.execute_command("ECHO", self._mark)  # type: ignore[no-untyped-call]
        self._thread.join()
        self._connection.disconnect()

    def _read(self) -> None:
        try:
            for words in self._lines():
                if words[:1] in ([b"evalsha"], [b"eval"]):
                    self._take(words)
        except (redis.RedisError, OSError) as error:
            self.fault = error

    def _lines(self) -> Iterator[list[bytes]]:
        """The commands that clients sent, up to the mark; not those that scripts ran."""
        while True:
            if not self._connection.can_read(1.0):
                continue  # nothing was run in that time
            line = self._connection.read_response(disable_decoding=True)
            match = LINE.fullmatch(line)
            if match is None or match[1] == b"lua":
                continue
            words = [_unescaped(word) for word in QUOTED_ARGUMENT.findall(match[2])]
            words[0] = words[0].lower()
            if words == [b"echo", self._mark.encode()]:
                return
            yield words

    def _take(self, words: list[bytes]) -> None:
        count = int(words[2])
        keys, argv = words[3 : 3 + count], words[3 + count :]
        if not keys or not all(key.startswith(self._prefix) for key in keys):
            return
        if words[0] == b"eval":
            digest = hashlib.sha1(words[1], usedforsecurity=False).hexdigest()
        else:
            digest = words[1].decode("ascii", "replace")
        name = self._scripts.get(digest, f"script {digest}")
        self.ran.append(Ran(name, [key.removeprefix(self._prefix).decode() for key in keys], argv))


def _unescaped(word: bytes) -> bytes:
    return ESCAPE.sub(
        lambda match: bytes([int(match[1][1:], 16)]) if len(match[1]) == 3 else PLAIN.get(match[1], match[1]),
        word,
    )
