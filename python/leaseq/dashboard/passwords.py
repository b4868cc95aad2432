"""A file of users with hashed passwords, a line for each: NAME:scrypt:LOG2_N:SALT:HASH."""

import base64
import binascii
import hashlib
import hmac
import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from leaseq.errors import BadArgumentError

LOG2_N: Final = 15
"""The cost of a new hash: 2^15 blocks of 1 KiB, which takes about 0.1 s."""

_MAX_LOG2_N: Final = 20
_BLOCK_SIZE: Final = 8
_NAME: Final = re.compile(r"[A-Za-z0-9_.@-]{1,100}", re.ASCII)


@dataclass(frozen=True, slots=True)
class PasswordHash:
    """The hash of a password, by scrypt."""

    log2_n: int
    salt: bytes
    digest: bytes

    def fits(self, password: str) -> bool:
        """Return whether this is the password. Takes about 0.1 s."""
        return hmac.compare_digest(_digest(password, self.salt, self.log2_n), self.digest)


NO_USER: Final = PasswordHash(LOG2_N, b"\0" * 16, b"\0" * 32)
"""A hash that no password has: an unknown name takes as long as a known one."""


class Passwords:
    """The users of a file, which is read again when it changes. Raises BadArgumentError, OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed_at = -1
        self._users: dict[str, PasswordHash] = {}
        self._key = os.urandom(32)
        self._known: set[bytes] = set()
        """Names and passwords that were right, as keyed hashes: each password is checked slowly once. A changed file has a new set."""
        self._guard = threading.Lock()
        self._slow = threading.Lock()
        self._reload()

    def accept(self, name: str, password: str) -> bool:
        """Return whether this is the password of that user. Guesses are checked one after the other."""
        pair = hmac.digest(self._key, f"{name}\0{password}".encode("utf-8", "surrogatepass"), "sha256")
        with self._guard:
            self._reload()
            known, found = self._known, self._users.get(name, NO_USER)
        if pair in known:
            return True
        with self._slow:
            right = found.fits(password)
            if right:
                known.add(pair)
            return right

    def _reload(self) -> None:
        """Read the file if it has changed."""
        changed_at = self._path.stat().st_mtime_ns
        if changed_at == self._changed_at:
            return
        lines = self._path.read_text(encoding="utf-8").splitlines()
        self._users = dict(_user(line, number) for number, line in enumerate(lines, 1) if line.strip())
        self._known = set()
        self._changed_at = changed_at


def line_of(name: str, password: str) -> str:
    """Return the line of a user for the file. Raises BadArgumentError."""
    if not _NAME.fullmatch(name):
        raise BadArgumentError(
            f"the name of a user is 1 to 100 of the characters A-Z a-z 0-9 _ . @ - and is {name!r}"
        )
    if not password:
        raise BadArgumentError("the password is empty; choose another")
    salt = os.urandom(16)
    return f"{name}:scrypt:{LOG2_N}:{_text(salt)}:{_text(_digest(password, salt, LOG2_N))}"


def _user(line: str, number: int) -> tuple[str, PasswordHash]:
    """Read a line. Raises BadArgumentError."""
    try:
        name, kind, log2_n, salt, digest = line.split(":")
        found = PasswordHash(int(log2_n), base64.b64decode(salt), base64.b64decode(digest))
    except (ValueError, binascii.Error):
        raise _bad_line(number) from None
    if kind != "scrypt" or not 1 <= found.log2_n <= _MAX_LOG2_N or not _NAME.fullmatch(name):
        raise _bad_line(number)
    return name, found


def _bad_line(number: int) -> BadArgumentError:
    return BadArgumentError(
        f"line {number} of the file of users is not NAME:scrypt:LOG2_N:SALT:HASH;"
        " write it with leaseq dashboard --auth FILE --add-user NAME"
    )


def _digest(password: str, salt: bytes, log2_n: int) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=1 << log2_n,
        r=_BLOCK_SIZE,
        p=1,
        maxmem=256 * _BLOCK_SIZE << log2_n,
        dklen=32,
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
