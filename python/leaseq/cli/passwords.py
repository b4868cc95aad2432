"""Passwords in the URLs that a program was given: `ps` and the commands that it starts are not to see them."""

import re
import sys
from typing import Final

# as URLs are read: what is before the last @ of the part with the host is user and password, whatever it has
_PASSWORD: Final = re.compile(
    r"(?<=://)([^/?#:]*:)[^/?#]+(?=@)|((?<=[?&])(?:sentinel_|ssl_)?password=)[^&#]+"
)
_HIDDEN: Final = "..."


def has_password(text: str) -> bool:
    """Return whether the text has a URL with a password."""
    return _PASSWORD.search(text) is not None


def without_passwords(text: str) -> str:
    """Return an argument with dots for each password of a URL."""
    return _PASSWORD.sub(lambda found: (found[1] or found[2]) + _HIDDEN, text)


def hide_from_ps(name: str) -> None:
    """If the arguments of this process have a password, let `ps` show them without it, behind the program's name."""
    arguments = sys.argv[1:]
    if any(map(has_password, arguments)):
        from setproctitle import setproctitle  # takes time, and few need it

        setproctitle(" ".join([name, *map(without_passwords, arguments)]))
