"""The rules that the ordinary vectors of each script show."""

from typing import Final

RULES: Final[dict[str, tuple[str, ...]]] = {
    "add": ("LQ-ADD-1", "LQ-ADD-2", "LQ-ADD-3", "LQ-ADD-6", "LQ-ADD-7", "LQ-ADD-8", "LQ-KEY-6"),
    "complete": ("LQ-COMPLETE-1", "LQ-COMPLETE-2", "LQ-COMPLETE-3", "LQ-COMPLETE-4", "LQ-COMPLETE-5"),
    "complete_and_lease": ("LQ-FUSED-1", "LQ-FUSED-2"),
    "complete_with": ("LQ-HANDOFF-1", "LQ-HANDOFF-2", "LQ-HANDOFF-3", "LQ-OUTCOME-1", "LQ-OUTCOME-2"),
    "configure": ("LQ-CONFIG-1", "LQ-CONFIG-2", "LQ-CONFIG-4"),
    "deep_clean": ("LQ-DEEP-2", "LQ-DEEP-3"),
    "extend": ("LQ-EXTEND-1", "LQ-EXTEND-2"),
    "inspect": ("LQ-READ-1", "LQ-READ-4"),
    "lease": (
        *("LQ-LEASE-1", "LQ-LEASE-2", "LQ-LEASE-3", "LQ-LEASE-4", "LQ-LEASE-5", "LQ-LEASE-6", "LQ-LEASE-7"),
        *("LQ-LEASE-9", "LQ-LEASE-10", "LQ-LEASE-11", "LQ-LEASE-12", "LQ-ORDER-1", "LQ-PAUSE-1"),
    ),
    "lease_any": ("LQ-ANY-1", "LQ-ANY-2", "LQ-ANY-3", "LQ-ANY-4", "LQ-ANY-5"),
    "light_clean": ("LQ-LIGHT-1", "LQ-LIGHT-2", "LQ-LIGHT-3", "LQ-LIGHT-4", "LQ-LIGHT-5"),
    "list": ("LQ-READ-1", "LQ-READ-5"),
    "outcome": ("LQ-OUTCOME-4", "LQ-OUTCOME-5", "LQ-OUTCOME-6"),
    "purge": ("LQ-DEAD-4",),
    "release": (
        *("LQ-RELEASE-1", "LQ-RELEASE-2", "LQ-RELEASE-3", "LQ-RELEASE-4"),
        *("LQ-DEAD-1", "LQ-DEAD-2", "LQ-OUTCOME-3", "LQ-ORDER-3"),
    ),
    "remove": ("LQ-REMOVE-1",),
    "revive": ("LQ-DEAD-3",),
    "settle": ("LQ-SETTLE-1", "LQ-ROOM-1"),
    "stats": ("LQ-READ-1", "LQ-READ-2", "LQ-READ-3"),
}
