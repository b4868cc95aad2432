"""The notation of wire cases, and the bytes that it stands for.

text                    its UTF-8; in a reply, an integer is an integer and null is nil
{$b64: ...}             bytes that are no text
{$repeat: [text, n]}    a long text
{$int: text}            in a reply: an integer, where the text is made by $each
{$key: "q:wake"}        the name of a key: of the queue q, `wake`
{$entry: q}             what stands for the queue q in the registry
{$each: {from, to, give: [...]}}
                        in a list: for each number from `from` to before `to`, these; # in a text is the number
"""

import base64
import re
from collections.abc import Callable
from typing import Any, Final

from leaseq_conformance.fault_proxy import Command
from leaseq_conformance.manifest import SCRIPTS

Prefix = Callable[[str], str]
"""A function from the name of a queue to the start of its keys' names."""

_OF_A_CASE: Final = re.compile(rb"(?:leaseq:\{[^}]*\}:|\w+-\d+:)\w+-(\d+)(?::|$)")
"""A key of a queue, or what stands for it in the registry, with the number of the case in its name."""

_OF_EACH_TARGET: Final = SCRIPTS["add"].keys
_OF_EACH_QUEUE: Final = SCRIPTS["lease"].keys
"""Keys that complete_with and lease_any take of each further queue, in the order of the specification's page 04."""


def script_keys(exchange: dict[str, Any]) -> list[str]:
    """All keys that the call of a script has to pass, as `queue:key`."""
    queue = exchange.get("queue", "q")
    keys = [f"{queue}:{key}" for key in SCRIPTS[exchange["script"]].keys]
    keys += [f"{name}:{key}" for name in exchange.get("queues", []) for key in _OF_EACH_QUEUE]
    keys += [f"{name}:{key}" for name in exchange.get("targets", []) for key in _OF_EACH_TARGET]
    return keys + [f"{queue}:result:{item_id}" for item_id in expanded(exchange.get("results", []))]


def expanded(value: Any) -> Any:
    """With every $each written out."""
    if isinstance(value, dict):
        return {name: expanded(part) for name, part in value.items()}
    if not isinstance(value, list):
        return value
    parts: list[Any] = []
    for part in value:
        if isinstance(part, dict) and "$each" in part:
            each = part["$each"]
            parts += [
                _numbered(one, number) for number in range(each["from"], each["to"]) for one in each["give"]
            ]
        else:
            parts.append(expanded(part))
    return parts


def _numbered(value: Any, number: int) -> Any:
    if isinstance(value, str):
        return value.replace("#", str(number))
    if isinstance(value, dict):
        return {name: _numbered(part, number) for name, part in value.items()}
    if isinstance(value, list):
        return [_numbered(part, number) for part in value]
    return value


def key(name: str, prefix: Prefix) -> bytes:
    """The full name of `queue:key`."""
    queue, _, rest = name.partition(":")
    return (prefix(queue) + rest).encode()


def is_of_another_case(command: Command, prefix: Prefix) -> bool:
    """Return whether a command is about queues of a case before this one alone, whose end it was sent at."""
    numbers = {found[1] for part in command.arguments[1:] if (found := _OF_A_CASE.match(part))}
    own = _OF_A_CASE.match(prefix("q").encode())
    return bool(numbers) and own is not None and own[1] not in numbers


def argument(value: Any, prefix: Prefix) -> bytes:
    """An argument of a command, as its bytes."""
    if isinstance(value, dict):
        if "$key" in value:
            return key(value["$key"], prefix)
        if "$entry" in value:
            group, _, name = (
                prefix(value["$entry"]).removeprefix("leaseq:{").removesuffix(":").partition("}:")
            )
            return f"{group}:{name}".encode()
        if "$repeat" in value:
            text, times = value["$repeat"]
            return str(text).encode() * int(times)
        return base64.b64decode(value["$b64"])
    return str(value).encode()


def reply(value: Any, prefix: Prefix) -> Any:
    """A reply, as `resp.reply` takes it."""
    if isinstance(value, list):
        return [reply(part, prefix) for part in expanded(value)]
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, dict) and "$int" in value:
        return int(value["$int"])
    return argument(value, prefix)
