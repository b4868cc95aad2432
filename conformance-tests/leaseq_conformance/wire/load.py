"""Reads files of wire cases. What the schema does not know, what no adapter could be asked and what has no rule is refused."""

import functools
import json
from collections.abc import Iterator
from importlib import resources
from typing import Any, Final

from leaseq_conformance import rules
from leaseq_conformance.adapter_protocol import MessageError, check_request
from leaseq_conformance.case_loader import read, texts
from leaseq_conformance.cases import Case
from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.scenarios.values import plain
from leaseq_conformance.schemas import Schema
from leaseq_conformance.wire.notation import expanded, script_keys
from leaseq_conformance.wire.tables import TableError, steps_of

SUITE: Final = "wire"
OF_NO_QUEUE: Final = {"lease_any", "queues", "live_workers"}


@functools.cache
def load_all() -> tuple[Case, ...]:
    """The cases that the package carries."""
    return tuple(case for text, name in texts(SUITE) for case in load(text, name))


def load(text: str, source: str) -> list[Case]:
    """The cases of one file. Raises CaseFileError."""
    return read(SUITE, text, source, _problems, _body)


def _body(written: dict[str, Any]) -> dict[str, Any]:
    steps = [_explicit(step) for step in steps_of(written)]
    more: dict[str, Any] = {name: written[name] for name in ("watch", "cluster") if name in written}
    return {"queues": written.get("queues", {"q": "q"}), **more, "steps": steps}


def _problems(written: dict[str, Any]) -> Iterator[str]:
    for rule in written["rules"]:
        if rule not in rules.rules():
            yield f"there is no rule {rule}"
    for capability in written["capabilities"]:
        if capability not in rules.capabilities():
            yield f"there is no capability {capability}"
    queues = written.get("queues", {"q": "q"})
    try:
        steps = steps_of(written)
    except TableError as error:
        yield str(error)
        return
    for step in steps:
        wrong = _step_schema().error(step)
        if wrong is not None:
            yield f"a step that is written out has {wrong.message[:300]}"
        yield from _problems_of_step(step, queues)


@functools.cache
def _step_schema() -> Schema:
    schema = json.loads((resources.files("leaseq_conformance.wire") / "schema.json").read_text("utf-8"))
    return Schema({"$ref": "#/$defs/step", "$defs": schema["$defs"]})


def _problems_of_step(step: dict[str, Any], queues: dict[str, str]) -> Iterator[str]:
    exchanges = list(_exchanges(step))
    named = {queue for one in (step, *exchanges) for queue in _queues(one)}
    for queue in named - set(queues):
        yield f"there is no queue {queue}"
    for exchange in exchanges:
        if exchange.get("script", "add") not in SCRIPTS:
            yield f"there is no script {exchange['script']}"
    if "call" in step:
        args = plain(expanded(step.get("args", {})))
        handle = None if step["call"] in OF_NO_QUEUE else "q"
        try:
            check_request({"id": 1, "op": "call", "queue": handle, "method": step["call"], "args": args})
        except MessageError as error:
            yield str(error)


def _exchanges(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    sent = step.get("sent", [])
    for sequence in sent.values() if isinstance(sent, dict) else [sent]:
        for exchange in sequence:
            yield exchange
            yield from exchange.get("meanwhile", [])


def _queues(part: dict[str, Any]) -> set[str]:
    args = part.get("args", {})
    queues = {
        part.get("queue", "q"),
        *part.get("queues", []),
        *part.get("targets", []),
        *args.get("queues", []),
    }
    items = expanded(args.get("items", []))
    return queues | {then["queue"] for item in items for then in item.get("then", [])}


def _explicit(step: dict[str, Any]) -> dict[str, Any]:
    """With digests and all keys in the place of the names of scripts, so that the case can be read alone."""
    sent = step.get("sent", [])
    sequences = sent if isinstance(sent, dict) else {"": sent}
    explicit = {
        name: [_explicit_exchange(exchange) for exchange in sequence] for name, sequence in sequences.items()
    }
    return {**step, "sent": explicit}


def _explicit_exchange(exchange: dict[str, Any]) -> dict[str, Any]:
    whole = dict(exchange)
    whole["meanwhile"] = [_explicit_exchange(one) for one in exchange.get("meanwhile", [])]
    if "script" in exchange:
        whole["by"] = exchange.get("by", "EVALSHA")
        whole["sha1"] = SCRIPTS[exchange["script"]].sha1
        whole["keys"] = script_keys(exchange)
        for name in ("queue", "queues", "targets", "results"):
            whole.pop(name, None)
    return whole
