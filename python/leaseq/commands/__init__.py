"""Every call as a value: the script, its keys and arguments, and how to read the reply. No I/O here.

Key and argument order come from the manifest; values are only brought into their wire form: ids and data as bytes,
durations in milliseconds, tokens in microseconds. Whether a value is allowed is for the script to say (LQ-CALL-1).
"""

from leaseq.commands.additions import add, add_each, add_one, add_together, all_in, queue_full
from leaseq.commands.codecs import add_options
from leaseq.commands.completions import Completion, complete
from leaseq.commands.encoding import Argument, Command, durably, milliseconds, pack, whole
from leaseq.commands.inspections import inspect, list_items, stats
from leaseq.commands.leases import (
    Extra,
    LeaseReply,
    Taken,
    check_lease_secs,
    complete_and_lease,
    extend,
    lease,
    lease_any,
    release_uncounted,
    settle,
)
from leaseq.commands.maintenance import (
    Cleaned,
    DeepCleaned,
    configure,
    deep_clean,
    delete,
    light_clean,
    promote,
    purge,
    remove,
    revive,
)
from leaseq.commands.outcomes import outcome
from leaseq.commands.releases import ReleaseRequest, release_each

__all__ = [
    "Argument",
    "Cleaned",
    "Command",
    "Completion",
    "DeepCleaned",
    "Extra",
    "LeaseReply",
    "ReleaseRequest",
    "Taken",
    "add",
    "add_each",
    "add_one",
    "add_options",
    "add_together",
    "all_in",
    "check_lease_secs",
    "complete",
    "complete_and_lease",
    "configure",
    "deep_clean",
    "delete",
    "durably",
    "extend",
    "inspect",
    "lease",
    "lease_any",
    "light_clean",
    "list_items",
    "milliseconds",
    "outcome",
    "pack",
    "promote",
    "purge",
    "queue_full",
    "release_each",
    "release_uncounted",
    "remove",
    "revive",
    "settle",
    "stats",
    "whole",
]
