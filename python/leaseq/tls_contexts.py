"""The TLS contexts of connections: made once for the same settings, and anew when a file of theirs has changed."""

import contextlib
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_VERIFY: Final = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_MAX_KEPT: Final = 32
"""Settings whose context is kept at the same time. A program has one or two."""

_kept: dict[Any, tuple[Any, ssl.SSLContext]] = {}
"""By settings: the state of the files that a context was made from, and the context."""


def tls_context(given: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the context for the settings of a client of redis-py. Raises OSError for a file that is none, ValueError, KeyError.

    Reading certificates takes 20 ms of CPU time, and each connection would pay it.
    """
    settings = tuple((name, repr(value)) for name, value in sorted(given.items()) if name.startswith("ssl_"))
    state = tuple(
        _state(path) for path in _files(given)
    )  # first: a file that changes now is read again later
    with contextlib.suppress(KeyError):
        known_state, context = _kept[settings]
        if known_state == state:
            return context
    context = _made(given)
    while len(_kept) >= _MAX_KEPT:
        with contextlib.suppress(StopIteration, KeyError, RuntimeError):  # another thread does the same
            del _kept[next(iter(_kept))]
    _kept[settings] = state, context
    return context


def _files(given: Mapping[str, Any]) -> list[Any]:
    """Return the files that a context is read from."""
    names = ("ssl_certfile", "ssl_keyfile", "ssl_ca_certs", "ssl_ca_path")
    standard = ssl.get_default_verify_paths()
    return [*(given.get(name) for name in names), standard.cafile, standard.capath]


def _state(path: Any) -> tuple[int, int, int] | None:
    """Return what differs when a file, or what a link leads to, is written or replaced."""
    if not path:
        return None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _made(given: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    required = given.get("ssl_cert_reqs", "required")
    verify = (
        required
        if isinstance(required, ssl.VerifyMode)
        else _VERIFY["none" if required is None else required]
    )
    context.check_hostname = bool(given.get("ssl_check_hostname", True)) and verify is not ssl.CERT_NONE
    context.verify_mode = verify
    for flag in given.get("ssl_include_verify_flags") or ():
        context.verify_flags |= flag
    for flag in given.get("ssl_exclude_verify_flags") or ():
        context.verify_flags &= ~flag
    own: Any = given.get("ssl_certfile")
    key = given.get("ssl_keyfile")
    if own is not None or key is not None:
        context.load_cert_chain(own or str(key), key, given.get("ssl_password"))
    trusted = [given.get(name) for name in ("ssl_ca_certs", "ssl_ca_path", "ssl_ca_data")]
    if any(trusted):
        context.load_verify_locations(*trusted)
    if given.get("ssl_min_version") is not None:
        context.minimum_version = given["ssl_min_version"]
    if given.get("ssl_ciphers"):
        context.set_ciphers(given["ssl_ciphers"])
    return context
