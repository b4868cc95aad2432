"""A password that is in a file and may change while a program runs, as a mounted secret does."""

from pathlib import Path

from redis import CredentialProvider


class PasswordFile(CredentialProvider):
    """The user and the password for each new connection, by `password_file` of a URL. Line ends behind the password do not count.

    Raises OSError if the file cannot be read when a connection is opened.
    """

    def __init__(self, path: str, username: str) -> None:
        self.path = path
        self.username = username

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Return what the file has now."""
        password = Path(self.path).read_text(encoding="utf-8", errors="surrogateescape").rstrip("\r\n")
        return (self.username, password) if self.username else (password,)

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        """Return what the file has now. It is short, so that the event loop reads it."""
        return self.get_credentials()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PasswordFile) and (self.path, self.username) == (other.path, other.username)

    def __hash__(self) -> int:
        return hash((self.path, self.username))
