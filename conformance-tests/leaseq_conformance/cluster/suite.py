"""The suite `cluster`: what a client does on a primary and its replica, as both servers tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.adapter_process import AdapterFaultError, AdapterProcess, NoAnswerError
from leaseq_conformance.adapter_protocol import b64
from leaseq_conformance.cases import BrokenError, Case, Context, UnjudgedError, Verdict, failed, passed
from leaseq_conformance.history.monitor_log import Witness
from leaseq_conformance.manifest import NAMES_BY_DIGEST
from leaseq_conformance.redis_cluster import RedisCluster
from leaseq_conformance.redis_server import SpawnedServer
from leaseq_conformance.server_process import ServerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaseq_conformance.redis_server import Server

HOUR_MS: Final = 3_600_000
ITEMS: Final = 4
NODES: Final = ("primary", "replica")


def cases() -> Sequence[Case]:
    """One case, for both nodes as the one that the client is told."""
    return [
        Case(
            "cluster/calls-go-to-the-primary",
            "A client of a cluster sends every call to the primary, whichever node it was told, and none to the replica",
            ("LQ-CLIENT-5",),
            ("core", "cluster"),
            {
                "calls": ["add", "lease", "extend", "release", "lease", "complete"],
                "told": [*NODES],
            },
        )
    ]


def run(case: Case, context: Context) -> Verdict:
    """Make a few calls through each node, and look where they were run."""
    program = context.server.program if isinstance(context.server, SpawnedServer) else None
    transcript: list[str] = []
    try:
        pair = RedisCluster(program, primaries=1, replicas=1)
    except ServerError as error:
        raise UnjudgedError(str(error)) from error
    with pair:
        for told in case.body["told"]:
            why = _play(told, pair, context, transcript)
            if why:
                return failed(f"told of the {told}: {why}", transcript)
    return passed(transcript)


def _play(told: str, pair: RedisCluster, context: Context, transcript: list[str]) -> str:
    """What is wrong; nothing where all is right."""
    name = f"orders-{told}"
    prefix = f"leaseq:{{{name}}}:{name}:"
    node: Server = pair.nodes[NODES.index(told)]
    with pair.nodes[0].client() as first, pair.nodes[1].client() as second:
        with (
            Witness(first, NAMES_BY_DIGEST, prefix) as right,
            Witness(second, NAMES_BY_DIGEST, prefix) as wrong,
        ):
            try:
                actor = AdapterProcess(told, context.adapter, node.url, cluster=True)
                with actor:
                    why = _calls(actor, name, context.patience)
            except AdapterFaultError as error:
                raise BrokenError(str(error), transcript) from error
            except NoAnswerError as error:
                raise UnjudgedError(str(error), transcript) from error
        for witness in (right, wrong):
            if witness.fault is not None:
                raise UnjudgedError(f"a server does not tell what it ran: {witness.fault!r}", transcript)
    transcript += actor.transcript
    transcript += [f"the primary ran {ran.script}" for ran in right.ran]
    transcript += [f"the replica ran {ran.script}" for ran in wrong.ran]
    if wrong.ran:
        return f"it sent {wrong.ran[0].script} to the replica"
    return why or ("" if right.ran else "it sent the primary nothing")


def _calls(actor: AdapterProcess, name: str, patience: float) -> str:
    def call(method: str, **args: Any) -> Any:
        return actor.start("q", method, **args).answer(patience)

    actor.open("q", name)
    items = [{"id": b64(b"%d" % number), "data": b64(b"data")} for number in range(ITEMS)]
    answers = [call("add", items=items)]
    for release in (True, False):
        leased = call("lease", count=ITEMS, duration_ms=HOUR_MS)
        answers.append(leased)
        if leased.kind != "ok":
            break
        held = [{"id": lease["id"], "token": lease["token"]} for lease in leased.value["leases"]]
        if len(held) != ITEMS:
            return f"it leased {len(held)} of {ITEMS} items"
        answers.append(call("extend", items=held, duration_ms=HOUR_MS))
        answers.append(call("release", items=held) if release else call("complete", items=held))
    refused = next((answer for answer in answers if answer.kind != "ok"), None)
    if refused is not None:
        return f"a call was answered {refused.kind} {refused.value}"
    return "" if answers[-1].value == [True] * ITEMS else f"completing was answered {answers[-1].value}"
