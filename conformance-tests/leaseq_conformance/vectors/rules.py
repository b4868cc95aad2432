"""The rules that the ordinary vectors of each script show."""

from typing import Final

RULES: Final[dict[str, tuple[str, ...]]] = {
    "add": (
        *("LQ-ADD-1", "LQ-ADD-2", "LQ-ADD-3", "LQ-ADD-6", "LQ-ADD-7", "LQ-ADD-8", "LQ-KEY-6"),
        *("LQ-ADD-4", "LQ-ADD-5", "LQ-KEY-7", "LQ-KEY-8", "LQ-KEY-9", "LQ-KEY-5", "LQ-ITEM-3"),
        *("LQ-ITEM-4", "LQ-ITEM-6", "LQ-CALL-6", "LQ-ORDER-1", "LQ-CONFIG-1"),
    ),
    "complete": (*("LQ-COMPLETE-1", "LQ-COMPLETE-2", "LQ-COMPLETE-3", "LQ-COMPLETE-4", "LQ-COMPLETE-5"),),
    "complete_and_lease": (*("LQ-FUSED-1", "LQ-FUSED-2"),),
    "complete_with": (
        *(
            "LQ-HANDOFF-1",
            "LQ-HANDOFF-2",
            "LQ-HANDOFF-3",
            "LQ-OUTCOME-1",
            "LQ-OUTCOME-2",
            "LQ-HANDOFF-4",
            "LQ-HANDOFF-5",
        ),
        *("LQ-OUTCOME-7",),
    ),
    "configure": (*("LQ-CONFIG-1", "LQ-CONFIG-2", "LQ-CONFIG-4", "LQ-PAUSE-2", "LQ-CALL-7"),),
    "deep_clean": (
        *("LQ-DEEP-2", "LQ-DEEP-3", "LQ-DEEP-1", "LQ-DEEP-4", "LQ-DEEP-5", "LQ-DEEP-6", "LQ-DEEP-7"),
        *("LQ-DEEP-8", "LQ-DEEP-9", "LQ-DEEP-10", "LQ-DEEP-11", "LQ-DEEP-12", "LQ-DEEP-13", "LQ-DEEP-14"),
    ),
    "extend": (*("LQ-EXTEND-1", "LQ-EXTEND-2", "LQ-SETTLE-2"),),
    "inspect": (*("LQ-READ-1", "LQ-READ-4"),),
    "lease": (
        *("LQ-LEASE-1", "LQ-LEASE-2", "LQ-LEASE-3", "LQ-LEASE-4", "LQ-LEASE-5", "LQ-LEASE-6", "LQ-LEASE-7"),
        *(
            "LQ-LEASE-9",
            "LQ-LEASE-10",
            "LQ-LEASE-11",
            "LQ-LEASE-12",
            "LQ-ORDER-1",
            "LQ-PAUSE-1",
            "LQ-LEASE-8",
        ),
        *("LQ-TIME-5", "LQ-FAIL-4"),
    ),
    "lease_any": (*("LQ-ANY-1", "LQ-ANY-2", "LQ-ANY-3", "LQ-ANY-4", "LQ-ANY-5"),),
    "light_clean": (
        *("LQ-LIGHT-1", "LQ-LIGHT-2", "LQ-LIGHT-3", "LQ-LIGHT-4", "LQ-LIGHT-5", "LQ-FAIL-1", "LQ-ROOM-1"),
        *("LQ-TIME-2", "LQ-KEY-4"),
    ),
    "list": (*("LQ-READ-1", "LQ-READ-5", "LQ-ERROR-3"),),
    "outcome": (*("LQ-OUTCOME-4", "LQ-OUTCOME-5", "LQ-OUTCOME-6", "LQ-OUTCOME-8", "LQ-KEY-10", "LQ-CALL-9"),),
    "purge": (*("LQ-DEAD-4", "LQ-TIME-3", "LQ-READ-6"),),
    "release": (
        *(
            "LQ-RELEASE-1",
            "LQ-RELEASE-2",
            "LQ-RELEASE-3",
            "LQ-RELEASE-4",
            "LQ-DEAD-1",
            "LQ-DEAD-2",
            "LQ-OUTCOME-3",
        ),
        *("LQ-ORDER-3", "LQ-ORDER-2", "LQ-CONFIG-3", "LQ-KEY-3"),
    ),
    "remove": (*("LQ-REMOVE-1", "LQ-CALL-3"),),
    "revive": (*("LQ-DEAD-3", "LQ-CALL-4", "LQ-PAUSE-3", "LQ-TIME-4"),),
    "settle": (*("LQ-SETTLE-1", "LQ-ROOM-1"),),
    "stats": (*("LQ-READ-1", "LQ-READ-2", "LQ-READ-3"),),
}

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
