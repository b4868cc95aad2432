"""A password that is in a file and may change while a program runs, as a mounted secret does."""

import re
from pathlib import Path
from typing import Final

from redis import AuthenticationError, CredentialProvider

_SENDABLE: Final = re.compile("[^\\ud800-\\udfff]*")
"""A text that UTF-8 has: without lone surrogates."""


class UnsendableLoginError(AuthenticationError):
    """The user or the password is no UTF-8, so that no connection can send it. Its text shows nothing of them (LQ-SAFE-3)."""


class PasswordFile(CredentialProvider):
    """The user and the password for each new connection, by `password_file` of a URL. Line ends behind the password do not count.

    When a connection is opened, raises OSError if the file cannot be read, UnsendableLoginError if it is no UTF-8.
    """

    def __init__(self, path: str, username: str) -> None:
        self.path = path
        self.username = username

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Return what the file has now."""
        password = _text(Path(self.path).read_bytes())
        if password is None:
            raise UnsendableLoginError(
                f"the password in the file {self.path} is no UTF-8: save it as UTF-8, or choose another password"
            )
        password = password.rstrip("\r\n")
        return (self.username, password) if self.username else (password,)

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        """Return what the file has now. It is short, so that the event loop reads it."""
        return self.get_credentials()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PasswordFile) and (self.path, self.username) == (other.path, other.username)

    def __hash__(self) -> int:
        return hash((self.path, self.username))


def _text(data: bytes) -> str | None:
    """Return the text of these bytes, None if they are no UTF-8. The error would keep them, and say which they are."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def check_login(user: object, password: object) -> None:
    """Raise UnsendableLoginError if a text is no UTF-8. Bytes of an environment that are none are surrogates in Python."""
    for name, value in (("username", user), ("password", password)):
        if isinstance(value, str) and not _SENDABLE.fullmatch(value):
            raise UnsendableLoginError(f"the {name} is no UTF-8: give it as UTF-8, or choose another {name}")
