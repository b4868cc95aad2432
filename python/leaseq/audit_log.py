"""The audit log: who changed what and when, as JSON lines in the file that $LEASEQ_AUDIT_LOG names."""

import contextlib
import getpass
import json
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from leaseq.formatting import one_line

VARIABLE: Final = "LEASEQ_AUDIT_LOG"


@dataclass(slots=True)
class Entry:
    """One change, which has two lines in the log.

    Attributes:
        changed: how many items, jobs or leases it changed; None if it does not count them.
    """

    changed: int | None = None


@contextlib.contextmanager
def logged(user: str, command: str, subject: Mapping[str, Any]) -> Iterator[Entry]:
    """Log a change before it starts and when it has ended, by whom it is and on what. Without $LEASEQ_AUDIT_LOG, log nothing.

    Raises OSError if the first line cannot be written: then the block does not run.
    """
    entry = Entry()
    path = os.environ.get(VARIABLE)
    if not path:
        yield entry
        return
    who = {"run": os.urandom(8).hex(), "user": user, "host": socket.gethostname(), "command": command}
    what = {**who, **subject}
    _write(path, {**what, "event": "started"})
    end: dict[str, Any] = {**what, "event": "ended", "error": None}
    try:
        yield entry
    except BaseException as error:
        end["error"] = one_line(error) or type(error).__name__
        raise
    finally:
        end["changed"] = entry.changed
        _write(path, end)


def system_user() -> str:
    """Return the name of the user of this process, behind that of who called sudo."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # there is no name for the number, as in many containers
        user = str(os.geteuid())
    caller = os.environ.get("SUDO_USER")
    return f"{caller} as {user}" if caller else user


def _write(path: str, record: dict[str, Any]) -> None:
    """Append a line, in one call of the system. Raises OSError."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"time": now, **record}, default=str).encode() + b"\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
    try:
        os.write(file, line)
    finally:
        os.close(file)
