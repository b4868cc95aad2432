"""The rules that no vector of a script shows alone."""

from typing import Final

ALWAYS: Final = ("LQ-SCRIPT-4",)
"""What is looked at with every vector of every script, and so is no single one's."""
TOGETHER: Final[dict[str, tuple[str, ...]]] = {
    "add": ("LQ-SCRIPT-6", "LQ-SETTLE-3", "LQ-SETTLE-5"),
    "complete": ("LQ-VERSION-2",),
    "extend": ("LQ-SCRIPT-6", "LQ-SETTLE-5", "LQ-VERSION-1", "LQ-VERSION-2"),
    "lease": ("LQ-SCRIPT-6", "LQ-SETTLE-3", "LQ-SETTLE-6", "LQ-SETTLE-7", "LQ-VERSION-1", "LQ-VERSION-2"),
    "light_clean": ("LQ-SCRIPT-6", "LQ-SETTLE-3"),
    "release": ("LQ-SCRIPT-6", "LQ-SETTLE-3", "LQ-SETTLE-5"),
    "stats": ("LQ-VERSION-1",),
}
"""What the vectors of a script show together: rules about whatever a call meets, and not about one kind of call."""
