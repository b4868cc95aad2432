"""Clients that put the wrong thing on the wire, or read a reply wrongly."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import TYPE_CHECKING, Any

from leaseq import _scripts, commands
from leaseq._sync import calls, queues
from leaseq.commands import adding, finishing, handoff, leasing, wire
from leaseq.item import Item
from leaseq.keys import QueueKeys
from leaseq_conformance.mutants.registry import everywhere, mutant, patch

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from leaseq.commands import Command


@mutant("LQ-CALL-1", "wire/add-plain")
def keys_swapped() -> None:
    """Types the order of an add's keys by hand, and swaps two: ready and delayed."""
    swapped = {"ready": "delayed", "delayed": "ready"}
    keys = tuple(swapped.get(key, key) for key in _scripts.ADD.keys)
    everywhere(_scripts.ADD, _scripts.ADD._replace(keys=keys))


@mutant("LQ-CALL-2", "wire/lease-one")
def integers_through_floats() -> None:
    """Keeps durations and tokens in floating point, and sends them so: 30000.0."""
    exact, own = wire.milliseconds, wire.held
    everywhere(exact, lambda seconds, what: float(exact(seconds, what)))

    def held(item: Any) -> tuple[str, float]:
        item_id, token = own(item)
        return item_id, float(token)

    everywhere(own, held)


@mutant("LQ-DEAD-2", "wire/release-error")
def argv_json_encoded() -> None:
    """Sends the text of an error as JSON, quotes and all, as another library's port did."""
    own = finishing._error
    patch(finishing, "_error", lambda error: json.dumps(own(error).decode()).encode())


@mutant("LQ-LEASE-4", "wire/lease-one")
def seconds_for_milliseconds() -> None:
    """Sends durations in seconds."""
    exact = wire.milliseconds
    everywhere(exact, lambda seconds, what: round(exact(seconds, what) / 1000))


@mutant("LQ-ITEM-2", "scenarios/add-lease-complete")
def data_decoded_as_text() -> None:
    """Reads the data of a leased item as UTF-8 and writes it back: what is no text is lost."""
    own = leasing.lease_reply

    def lease_reply(reply: list[Any]) -> Any:
        read = own(reply)
        items = [
            (item_id, data.decode(errors="replace").encode(), token, attempt)
            for item_id, data, token, attempt in read.items
        ]
        return dataclasses.replace(read, items=items)

    everywhere(own, lease_reply)


@mutant("LQ-KEY-1", "wire/add-plain")
def hash_tag_missing() -> None:
    """Names its keys without the braces: works on one server, and no other client sees the queue."""
    own = QueueKeys.__init__

    def init(self: QueueKeys, name: str, group: str | None = None) -> None:
        own(self, name, group)
        self._prefix = self._prefix.replace("{", "").replace("}", "")

    patch(QueueKeys, "__init__", init)


@mutant("LQ-KEY-2", "wire/queue-name-refused")
def names_unchecked() -> None:
    """Takes any name for a queue, and leaves it to the server."""
    QueueKeys.__init__.__globals__["_checked"] = lambda text, _what: text


@mutant("LQ-SCRIPT-1", "wire/add-plain")
def script_edited() -> None:
    """Sends its scripts with the white space at the end of their lines put in order."""
    for script in [each for each in vars(_scripts).values() if isinstance(each, _scripts.Script)]:
        source = script.source.rstrip() + "\n\n"
        digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
        everywhere(script, script._replace(source=source, sha1=digest))


@mutant("LQ-SCRIPT-2", "wire/noscript")
def no_noscript_fallback() -> None:
    """Loads its scripts when it connects and never again: NOSCRIPT is an error that it reports."""

    class Never(Exception):  # noqa: N818
        pass

    patch(calls, "NoScriptError", Never)


@mutant("LQ-SCRIPT-3", "wire/pipeline")
def pipeline_by_digest() -> None:
    """Puts EVALSHA into pipelines and transactions, where nothing answers NOSCRIPT."""
    patch(wire.Command, "eval", wire.Command.evalsha)


@mutant("LQ-ITEM-1", "wire/id-too-long")
def ids_cut_to_length() -> None:
    """Cuts an id that is too long to the 256 bytes that are allowed."""
    own = Item.__init__

    def init(self: Item, data: Any, id: Any = None, **more: Any) -> None:  # noqa: A002
        own(self, data, id, **more)
        self.id = self.id.encode("utf-8", "surrogateescape")[:256].decode("utf-8", "ignore")

    patch(Item, "__init__", init)


@mutant("LQ-ITEM-5", "wire/lease-headers")
def headers_dropped() -> None:
    """Skips the headers that a lease tells."""
    patch(leasing, "_header", lambda _extra, _name, _value: None)


@mutant("LQ-CLIENT-6", "wire/add-full")
def full_is_exists() -> None:
    """Takes every answer of an add that is not above 0 for an item that exists."""
    patch(adding, "_all_added", lambda reply: [created > 0 for created in wire.answers(reply)])


@mutant("LQ-CLIENT-7", "wire/complete-keep")
def keep_ignored() -> None:
    """Completes an item that keeps its outcome like any other."""
    own = commands.complete

    def complete(keys: QueueKeys, items: Any, **options: Any) -> Command[list[bool]]:
        for item in items:
            item.keep = 0
        return own(keys, items, **options)

    everywhere(own, complete)


@mutant("LQ-CLIENT-9", "wire/hand-off-cross-group")
def cross_group_sent() -> None:
    """Leaves it to the server to refuse a follow-up for a queue of another group."""
    everywhere(handoff.check_targets, lambda _keys, _place, _finished: None)


@mutant("LQ-CLUSTER-2", "wire/lease-any-two-groups")
def groups_mixed() -> None:
    """Asks queues of different groups with one call, as long as they are on one server."""

    def server(queue: Any) -> tuple[Hashable, str]:
        return queue._place, ""

    patch(queues, "_server", server)


@mutant("LQ-CLUSTER-1", "wire/wait-on-one-group")
def group_ignored() -> None:
    """Makes the queue's own name the hash tag, whatever its group: queues of one group lie in several slots."""
    own = QueueKeys.__init__

    def init(self: QueueKeys, name: str, group: str | None = None) -> None:
        own(self, name, group)
        self._prefix = f"leaseq:{{{name}}}:{name}:"

    patch(QueueKeys, "__init__", init)


@mutant("LQ-TIME-1", "wire/add-delay")
def delay_by_own_clock() -> None:
    """Turns a delay into a time of its own clock before it sends it."""
    import time

    own = adding.add_options

    def add_options(**options: Any) -> tuple[str | int, ...]:
        sent: list[str | int] = list(own(**options))
        if "delay" in sent:
            place = sent.index("delay")
            sent[place] = "not_before"
            sent[place + 1] = int(sent[place + 1]) + round(time.time() * 1000)
        return tuple(sent)

    everywhere(own, add_options)


@mutant("LQ-CALL-5", "wire/add-several")
def batch_sent_singly() -> None:
    """Makes one call for each entry: when one is refused, those before it have taken effect."""
    from leaseq import flows

    def chunks(members: Iterable[Any], _size: Any = None) -> Iterable[list[Any]]:
        return [[member] for member in members]

    everywhere(flows.chunks, chunks)
