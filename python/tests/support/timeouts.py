"""A machine that stands still for seconds is no broken connection: replies may take a minute in tests.

redis-py gives a reply five seconds by default, and what had broken would be up to the machine. A test
that is about such a bound sets it itself. Programs that a test starts keep the five seconds.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from typing import TYPE_CHECKING, Final

import redis.asyncio.connection
import redis.connection

if TYPE_CHECKING:
    from collections.abc import Iterator

REPLY_SECS: Final = 60
BOUNDS: Final = frozenset({"socket_timeout", "socket_connect_timeout"})


def extend_default_timeouts() -> None:
    """Let every client of redis-py that names no bound wait for REPLY_SECS."""
    for module in (redis.connection, redis.asyncio.connection):
        for kind in (module.AbstractConnection, module.UnixDomainSocketConnection):
            init = inspect.unwrap(kind.__init__)
            names = inspect.getfullargspec(init).args
            given = init.__defaults__ or ()
            named = dict(zip(names[len(names) - len(given) :], given, strict=True))
            init.__defaults__ = tuple(
                REPLY_SECS if name in BOUNDS else value for name, value in named.items()
            )
            for name in BOUNDS & (init.__kwdefaults__ or {}).keys():
                init.__kwdefaults__[name] = REPLY_SECS


@contextlib.contextmanager
def reply_grace(seconds: float) -> Iterator[None]:
    """Let clients wait that long for a reply once a block should be over, or for what ends an item."""
    with contextlib.ExitStack() as after:
        for name, module in list(sys.modules.items()):
            if name.startswith("leaseq.") and hasattr(module, "REPLY_GRACE"):
                after.callback(setattr, module, "REPLY_GRACE", module.REPLY_GRACE)
                vars(module)["REPLY_GRACE"] = seconds
        yield
