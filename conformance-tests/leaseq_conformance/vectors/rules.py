"""The rules that no vector of a script shows alone."""

from typing import Final

ALWAYS: Final = ("LQ-CALL-7", "LQ-ITEM-3", "LQ-KEY-3", "LQ-SCRIPT-4")
"""What is looked at with every vector of every script, and so is no single one's."""
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
    "release": ("LQ-ORDER-1", "LQ-SCRIPT-6", "LQ-SETTLE-3", "LQ-SETTLE-5"),
    "revive": ("LQ-CALL-4",),
    "stats": ("LQ-READ-1", "LQ-VERSION-1"),
}
"""What the vectors of a script show together: rules about whatever a call meets, and not about one kind of call."""
