"""Reads files of wire cases. What the schema does not know, what no adapter could be asked and what has no rule is refused."""

import functools
import json
from collections.abc import Iterator
from importlib import resources
from typing import Any, Final

import yaml
from jsonschema import Draft202012Validator

from leaseq_conformance import rules
from leaseq_conformance.cases import Case
from leaseq_conformance.messages import MessageError, check_request
from leaseq_conformance.scenarios.values import plain
from leaseq_conformance.wire.words import SCRIPTS, expanded, script_keys

SUITE: Final = "wire"
LISTS: Final = ("rules", "capabilities", "catches")


class WireError(Exception):
    """A wire case that is not right; the message says which and why."""


@functools.cache
def load_all() -> tuple[Case, ...]:
    """The cases that the package carries."""
    folder = resources.files("leaseq_conformance") / "cases" / SUITE
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name
    )
    return tuple(case for file in files for case in load(file.read_text("utf-8"), file.name))


def load(text: str, source: str) -> list[Case]:
    """The cases of one file. Raises WireError."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise WireError(f"{source}: {error}") from error
    wrong = next(_validator().iter_errors(found), None)
    if wrong is not None:
        place = "/".join(map(str, wrong.absolute_path))
        raise WireError(f"{source}: at {place or 'the top'}: {wrong.message[:300]}")
    return [_case(written, source) for written in found]


@functools.cache
def _validator() -> Draft202012Validator:
    schema = resources.files("leaseq_conformance.wire") / "schema.json"
    return Draft202012Validator(json.loads(schema.read_text("utf-8")))


def _case(written: dict[str, Any], source: str) -> Case:
    for problem in _problems(written):
        raise WireError(f"{source}: {written['name']}: {problem}")
    body = {
        "queues": written.get("queues", {"q": "q"}),
        "steps": [_explicit(step) for step in written["steps"]],
    }
    lists = {name: tuple(written[name]) for name in LISTS}
    return Case(f"{SUITE}/{written['name']}", written["title"], **lists, body=body)


def _problems(written: dict[str, Any]) -> Iterator[str]:
    for rule in written["rules"]:
        if rule not in rules.rules():
            yield f"there is no rule {rule}"
    for capability in written["capabilities"]:
        if capability not in rules.capabilities():
            yield f"there is no capability {capability}"
    queues = written.get("queues", {"q": "q"})
    for step in written["steps"]:
        yield from _problems_of_step(step, queues)


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
        handle = None if step["call"] == "lease_any" else "q"
        try:
            check_request({"id": 1, "op": "call", "queue": handle, "method": step["call"], "args": args})
        except MessageError as error:
            yield str(error)


def _exchanges(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    sent = step.get("sent", [])
    for lane in sent.values() if isinstance(sent, dict) else [sent]:
        for exchange in lane:
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
    return queues | {then["queue"] for item in args.get("items", []) for then in item.get("then", [])}


def _explicit(step: dict[str, Any]) -> dict[str, Any]:
    """With digests and all keys in the place of the names of scripts, so that the case can be read by itself."""
    sent = step.get("sent", [])
    lanes = sent if isinstance(sent, dict) else {"": sent}
    told = {name: [_explicit_exchange(exchange) for exchange in lane] for name, lane in lanes.items()}
    return {**step, "sent": told}


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
