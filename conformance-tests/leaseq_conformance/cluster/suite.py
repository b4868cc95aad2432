"""The suite `cluster`: what a client does on a primary and its replica, as both servers tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.adapter_process import (
    AdapterFaultError,
    AdapterProcess,
    Answer,
    NoAnswerError,
)
from leaseq_conformance.adapter_protocol import b64
from leaseq_conformance.cases import Case, Context
from leaseq_conformance.history.monitor_log import Witness
from leaseq_conformance.manifest import NAMES_BY_DIGEST
from leaseq_conformance.redis_cluster import SLOTS, RedisCluster, cluster
from leaseq_conformance.redis_server import SpawnedServer
from leaseq_conformance.server_process import ServerError
from leaseq_conformance.verdict import BrokenError, UnjudgedError, Verdict, failed, passed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import redis

    from leaseq_conformance.redis_server import Server

HOUR_MS: Final = 3_600_000
ITEMS: Final = 4
NODES: Final = ("primary", "replica")
MOVED: Final = "cluster/moved-is-learned"
DEAD: Final = "cluster/dead-node-is-left"
CALLS: Final = 10
"""More than the replies MOVED that a client gets if each of its connections, and the registry's call, gets one."""


def cases() -> Sequence[Case]:
    """Return the cases. In the first, one client is given the primary and another the replica."""
    return [
        Case(
            "cluster/calls-go-to-the-primary",
            "A client of a cluster sends every call to the primary, whichever node it was given, and none to the replica",
            ("LQ-CLIENT-5",),
            ("core", "cluster"),
            {
                "calls": ["add", "lease", "extend", "release", "lease", "complete"],
                "told": [*NODES],
            },
        ),
        Case(
            MOVED,
            "A client that receives MOVED follows to that host and port, and learns it: later calls go there at once",
            ("LQ-CLUSTER-3",),
            ("core", "cluster"),
            {"calls": ["lease", "add"], "moved": "the slot, between the first call and the others"},
        ),
        Case(
            DEAD,
            "A client whose calls a node answered asks another node once that one is dead, and finds who has its slots now",
            ("LQ-FAIL-5",),
            ("core", "cluster"),
            {"calls": ["lease", "add"], "killed": "the node of the slot, which another has then"},
        ),
    ]


def run(case: Case, context: Context) -> Verdict:
    """Run a case on a temporary cluster."""
    program = context.server.program if isinstance(context.server, SpawnedServer) else None
    transcript: list[str] = []
    follow = {MOVED: _follow, DEAD: _leave}.get(case.name)
    try:
        pair = (
            RedisCluster(program, primaries=2, apart=True)
            if follow
            else RedisCluster(program, primaries=1, replicas=1)
        )
    except ServerError as error:
        raise UnjudgedError(str(error)) from error
    with pair:
        if follow:
            why = follow(pair, context, transcript)
            return failed(why, transcript) if why else passed(transcript)
        for node_name in case.body["told"]:
            why = _play(node_name, pair, context, transcript)
            if why:
                return failed(f"told of the {node_name}: {why}", transcript)
    return passed(transcript)


def _follow(pair: RedisCluster, context: Context, transcript: list[str]) -> str:
    """Make calls before and after a slot moves from the node that the client was given. Return what is wrong, if anything."""
    first, second = pair.primaries
    with first.client() as client:
        name, slot = _name_on(client, first=True)
        moved = 0

        def move() -> None:
            nonlocal moved
            for key in client.keys(f"leaseq:{{{name}}}:*"):
                client.delete(key)
            pair.move(slot, second)
            moved = _count_of_moved(client)

        answers = _calls_around(move, name, first.url, context, transcript)
        moved = _count_of_moved(client) - moved
    transcript.append(f"the first node answered MOVED {moved} times after the slot had moved")
    if _is_reported(answers[1]):
        del answers[1]  # LQ-CLUSTER-3 leaves that to the client
    refused = next((answer for answer in answers if answer.kind != "ok"), None)
    if refused is not None:
        return f"a call was answered {refused.kind} {refused.value}"
    return f"{CALLS} calls were answered MOVED {moved} times" if moved >= CALLS else ""


def _leave(pair: RedisCluster, context: Context, transcript: list[str]) -> str:
    """Kill the node that answered, and give its slot to the node that the client was given. Return what is wrong, if anything."""
    first, second = pair.primaries
    with first.client() as client:
        name, slot = _name_on(client, first=False)

        def leave() -> None:
            second.kill()
            cluster(client, "SETSLOT", slot, "NODE", cluster(client, "MYID"))

        answers = _calls_around(leave, name, first.url, context, transcript)
    if answers[0].kind != "ok":
        return f"the first call was answered {answers[0].kind} {answers[0].value}"
    # how many calls find out that the node is dead is left to the client
    last = answers[-1]
    return "" if last.kind == "ok" else f"{CALLS} calls failed, the last with {last.value}"


def _calls_around(
    change: Callable[[], None], name: str, url: str, context: Context, transcript: list[str]
) -> list[Answer]:
    """Lease from a queue, change the cluster, and add items. Return all answers."""
    try:
        actor = AdapterProcess("told of the first", context.adapter, url, cluster=True)
        with actor:
            actor.open("q", name)
            answers = [actor.start("q", "lease", duration_ms=HOUR_MS).answer(context.patience)]
            change()
            for number in range(CALLS):
                item = {"id": b64(b"%d" % number), "data": b64(b"data")}
                answers.append(actor.start("q", "add", items=[item]).answer(context.patience))
    except AdapterFaultError as error:
        raise BrokenError(str(error), transcript) from error
    except NoAnswerError as error:
        raise UnjudgedError(str(error), transcript) from error
    transcript += actor.transcript
    return answers


def _name_on(client: redis.Redis, *, first: bool) -> tuple[str, int]:
    """Return the name of a queue on the first or the second of two primaries, and its slot."""
    return next(
        (name, slot)
        for name in (f"orders-{number}" for number in range(SLOTS))
        if ((slot := cluster(client, "KEYSLOT", name)) < SLOTS // 2) == first
    )


def _is_reported(answer: Answer) -> bool:
    """Return whether it says that the call was not run."""
    return answer.kind == "error" and answer.value["code"] is None and answer.value["definite"] is True


def _count_of_moved(client: redis.Redis) -> int:
    """Return how often a node has answered MOVED."""
    stats: dict[str, Any] = client.info("errorstats")
    return int(stats.get("errorstat_MOVED", {"count": 0})["count"])


def _play(node_name: str, pair: RedisCluster, context: Context, transcript: list[str]) -> str:
    """Return what is wrong; nothing where all is right."""
    name = f"orders-{node_name}"
    prefix = f"leaseq:{{{name}}}:{name}:"
    node: Server = pair.nodes[NODES.index(node_name)]
    with pair.nodes[0].client() as first, pair.nodes[1].client() as second:
        with (
            Witness(first, NAMES_BY_DIGEST, prefix) as right,
            Witness(second, NAMES_BY_DIGEST, prefix) as wrong,
        ):
            try:
                actor = AdapterProcess(node_name, context.adapter, node.url, cluster=True)
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
