"""The rules that no vector of a script shows alone."""

from typing import Final

ALWAYS: Final = ("LQ-CALL-7", "LQ-ITEM-3", "LQ-KEY-3", "LQ-SCRIPT-4")
"""Rules that every vector of every script checks, so that no vector names them."""
TOGETHER: Final[dict[str, tuple[str, ...]]] = {
    "add": (
        *("LQ-ADD-5", "LQ-ADD-6", "LQ-KEY-5", "LQ-KEY-6", "LQ-ORDER-1"),
        *("LQ-SCRIPT-6", "LQ-SETTLE-3", "LQ-SETTLE-5"),
    ),
    "complete": ("LQ-COMPLETE-5", "LQ-VERSION-2"),
    "extend": ("LQ-SCRIPT-6", "LQ-SETTLE-2", "LQ-SETTLE-5", "LQ-VERSION-1", "LQ-VERSION-2"),
    "lease": (
        *("LQ-ORDER-1", "LQ-SCRIPT-6", "LQ-SETTLE-3", "LQ-SETTLE-6", "LQ-SETTLE-7"),
        *("LQ-VERSION-1", "LQ-VERSION-2"),
    ),
    "light_clean": ("LQ-FAIL-1", "LQ-SCRIPT-6", "LQ-SETTLE-3"),
    "promote": ("LQ-CALL-4",),
    "release": ("LQ-ORDER-1", "LQ-SCRIPT-6", "LQ-SETTLE-3", "LQ-SETTLE-5"),
    "revive": ("LQ-CALL-4",),
    "stats": ("LQ-READ-1", "LQ-VERSION-1"),
}
"""Rules that only all vectors of a script together show: they are about every call, not about one kind of call."""
