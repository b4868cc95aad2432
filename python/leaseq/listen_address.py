"""The address of a program's port for metrics and health."""

from leaseq.errors import BadArgumentError

MAX_PORT = 65535


def parsed(text: str) -> tuple[str, int]:
    """Return the host and port of HOST:PORT; an IPv6 host may be in brackets. Raises BadArgumentError."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > MAX_PORT:
        raise BadArgumentError(f"{text!r} is no address: write HOST:PORT")
    return host, int(port)
