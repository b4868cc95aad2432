"""The item that a schedule is: it waits for the next slot, and hands on to itself (LQ-JOB-12)."""

from typing import Final

import msgspec

from leaseq.errors import BadNameError
from leaseq.item import Item
from leaseq.jobs.envelope import Integer, Stage
from leaseq.jobs.serializer import UNREADABLE
from leaseq.keys import QueueKeys

SUFFIX: Final = ".cron"
VERSION: Final = 1
UNSAID: Final = 0
"""The version of an item without one: earlier releases wrote none."""

_ENCODER = msgspec.json.Encoder()


class ScheduleState(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The data of the item; times are ms since 1970, 0 for none.

    `until`: all slots up to here are over. `last`, `next`: the last slot that got a job, and the next; with `rule` and
    `missed` they are for people. `job`: what each slot gets.
    """

    v: int = UNSAID
    until: Integer
    last: Integer = 0
    next: Integer = 0
    rule: str = ""
    missed: str = ""
    job: Stage | None = None


def queue_of(jobs: str) -> str:
    """The queue of the schedules whose jobs go to the queue `jobs`. Raises BadNameError."""
    name = jobs + SUFFIX
    try:
        QueueKeys(name)
    except BadNameError as error:
        raise BadNameError(
            f"the name of a queue that has schedules is at most {100 - len(SUFFIX)} characters long"
        ) from error
    return name


def paused_key(keys: QueueKeys) -> str:
    """A SET of the names of schedules that are paused."""
    return keys.key("paused")


def item(name: str, tick: ScheduleState) -> Item:
    """The item of a schedule."""
    tick.v = VERSION
    return Item(_ENCODER.encode(tick), name)


def read(data: bytes | None) -> ScheduleState | None:
    """Read an item; None if it is no schedule's, or one of a later version."""
    try:
        tick = None if data is None else msgspec.json.decode(data, type=ScheduleState)
    except UNREADABLE:
        return None
    return tick if tick is not None and tick.v in {VERSION, UNSAID} else None
