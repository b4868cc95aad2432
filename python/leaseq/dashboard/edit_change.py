"""The change that requeues a dead letter with edited data: a new item is added before the old one goes."""

import json
import uuid
from collections.abc import Mapping
from typing import Final

from leaseq import Item, WorkQueue
from leaseq.dashboard.access import Action
from leaseq.dashboard.change import Plan, Report
from leaseq.dashboard.item_changes import (
    ItemChange,
    facts_of,
    meanwhile_of,
    planned,
    planned_already,
    shown_of,
    unfit,
)
from leaseq.dashboard.purge_plans import UNDO_SECS, PurgePlans
from leaseq.dashboard.source import Source
from leaseq.errors import FormatError, QueueFullError, TooLargeError
from leaseq.formatting import duration, moment, plain, size
from leaseq.keys import RegisteredQueue
from leaseq.results import ItemInfo
from leaseq.transfer import records
from leaseq.transfer.records import Stored

MAX_EDITED_BYTES: Final = 65536
"""Bytes of data that can be edited in a form."""

AREA: Final = "data"
"""The name of the field of the data."""

_HEX_WIDTH: Final = 32
_QUESTION: Final = (
    f"Add a new item with these data? The old one goes in {duration(UNDO_SECS)}; until then, you can keep it."
)


class EditChange(ItemChange):
    """Add a dead letter again with other data, under a new id. Then plan the purge of the old one, which can be undone."""

    def __init__(
        self,
        source: Source,
        action: Action,
        queue: RegisteredQueue,
        item_id: str,
        plans: PurgePlans,
        user: str,
        given: str,
    ) -> None:
        super().__init__(source, action, queue, item_id, plans, user)
        self.name = "requeue"
        self._given = given

    def plan(self) -> Plan:
        """Return the data as they are now, as text, or as hex digits if a form would change the text."""
        with self._source.queue(self.queue) as queue:
            item = queue.inspect(self._id)
            stored, refusal = self._read(queue, item)
        facts = facts_of(item) if item.state != "absent" else []
        if stored is None:
            return Plan(_QUESTION, facts=facts, refusal=refusal)
        form, text = _form(stored.data)
        facts += [("new item", f"keeps {_kept(item, stored)}"), ("limit", size(MAX_EDITED_BYTES))]
        shown = {**shown_of(item), "new_id": str(uuid.uuid4()), "form": form}
        meaning = "bytes as hex digits" if form == "hex" else "text, sent as UTF-8"
        return Plan(_QUESTION, shown, facts, areas=[(AREA, meaning, text)])

    def perform(self, shown: Mapping[str, str]) -> Report:
        """Add the new item, if the old one is as it was shown. Sent twice, it adds nothing more."""
        with self._source.queue(self.queue) as queue:
            item = queue.inspect(self._id)
            if meanwhile := meanwhile_of(shown, item):
                return _nothing(meanwhile)
            stored, refusal = self._read(queue, item)
            if stored is None:
                return _nothing(refusal)
            data, wrong = _data(self._given, shown.get("form", ""), stored.data)
            if wrong:
                return _nothing(f"{wrong} Go back to correct it.")
            new = Item(
                data, shown.get("new_id", ""), headers=stored.headers, content_type=stored.content_type
            )
            left = item.expires - queue.stats().now
            try:
                is_new = queue.add_item(
                    new,
                    priority=item.priority,
                    max_attempts=stored.max_attempts,
                    expires_in=left if item.expires and left > 0 else None,
                    dead_on_expiry=stored.dead_on_expiry and bool(item.expires) and left > 0,
                    keep=item.keep or None,
                )
            except (QueueFullError, TooLargeError) as error:
                return _nothing(str(error))
        if not is_new:
            return Report(
                f"Nothing was done. An item {new.id} exists: this form was sent before.", new_id=new.id
            )
        plans = self._plans.add(self.queue, [item], self._user)
        return Report(f"Added as item {new.id}. The old one: {planned(1, plans)}", 1, plans, new.id)

    def _read(self, queue: WorkQueue, item: ItemInfo) -> tuple[Stored | None, str]:
        """Return the data and options of the item; or None, and why it cannot be edited."""
        if item.state != "dead":
            return None, unfit(item)
        if refusal := planned_already(self._plans, item, self.queue):
            return None, refusal
        if item.size > MAX_EDITED_BYTES:
            return (
                None,
                f"The data have {size(item.size)}. Up to {size(MAX_EDITED_BYTES)} can be edited here.",
            )
        try:
            (stored,) = records.read(queue, [item.id])
        except FormatError as error:
            return None, str(error)
        return stored, "" if stored else "The item is gone."


def _form(data: bytes) -> tuple[str, str]:
    """Return how data are edited, and their text. A form would change line ends, and a page writes controls out."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if all(plain(line) == line for line in text.replace("\t", "").split("\n")):
        return "text", text
    lines = (data[at : at + _HEX_WIDTH].hex(" ") for at in range(0, len(data), _HEX_WIDTH))
    return "hex", "\n".join(lines)


def _data(given: str, form: str, before: bytes) -> tuple[bytes, str]:
    """Return the data that a form gives, and what is wrong with them."""
    if form == "hex":
        try:
            data = bytes.fromhex(given)
        except ValueError:
            return b"", "The data must be pairs of hex digits."
    else:
        data = given.replace("\r\n", "\n").encode(errors="replace")
    if len(data) > MAX_EDITED_BYTES:
        return b"", f"The data have {size(len(data))}, and at most {size(MAX_EDITED_BYTES)} are allowed here."
    if _is_json(before) and not _is_json(data):
        return b"", "The data were JSON, and these are not."
    return data, ""


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _kept(item: ItemInfo, stored: Stored) -> str:
    """Return what a new item has of the old one."""
    kept = [f"priority {item.priority}", f"its headers: {len(stored.headers)}"]
    kept += [f"content type {stored.content_type}"] if stored.content_type else []
    kept += (
        [f"at most {stored.max_attempts or 'unlimited'} attempts"] if stored.max_attempts is not None else []
    )
    kept += [f"its outcome for {duration(item.keep)}"] if item.keep else []
    kept += [f"its expiry at {moment(item.expires)}, unless that has passed"] if item.expires else []
    return ", ".join(kept)


def _nothing(why: str) -> Report:
    return Report(f"Nothing was done. {why}")
