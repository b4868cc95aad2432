"""The suite `rights`: each role of spec/11-security.md can do what it is for, by the rules of its row and no others.

The scripts of a role are called by a user with its rules, on the queues of the vectors; and a client works as a user with
the rules of a worker and what connections need.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import redis

from leaseq_conformance.adapter_process import AdapterFaultError, AdapterProcess, NoAnswerError
from leaseq_conformance.adapter_protocol import b64
from leaseq_conformance.cases import Case, Context
from leaseq_conformance.rules import pages
from leaseq_conformance.vectors import case_file
from leaseq_conformance.vectors.compare import agree
from leaseq_conformance.vectors.executor import BATCH, VectorExecutor, refused
from leaseq_conformance.vectors.vector import Refused
from leaseq_conformance.verdict import BrokenError, UnjudgedError, Verdict, failed, passed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from leaseq_conformance.vectors.vector import Vector

USER: Final = "leaseq-conformance"
PASSWORD: Final = "leaseq-conformance"  # noqa: S105 (of a user who is gone with the case)
ROW: Final = re.compile(r"^\| ([\w, ]+) \| ([\w, ]+) \| `(\+.*)` \|$", re.MULTILINE)
FOR_CONNECTIONS: Final = ("+@connection", "+role", "+info", "+cluster", "+command")
"""Rights that client libraries need while they connect, in addition to those of a role."""
HOUR_MS: Final = 3_600_000


def roles() -> dict[str, tuple[list[str], list[str]]]:
    """The operations and the rules of each role, as the page has them; of several names of a role the first."""
    rows = ROW.findall((pages() / "11-security.md").read_text("utf-8"))
    return {
        names.split(",")[0]: (operations.split(", "), rules.replace("\\|", "|").split())
        for names, operations, rules in rows
    }


def cases() -> Sequence[Case]:
    """One for each role that a rule is about, and one for clients."""
    return [
        Case(
            "rights/worker",
            "A user with the worker's rules calls every script of a worker, on every queue of the vectors",
            ("LQ-SAFE-1",),
            (),
            {"role": "worker"},
        ),
        Case(
            "rights/reader",
            "A user with the reader's rules reads, and no call that would write does",
            ("LQ-SAFE-2",),
            (),
            {"role": "reader"},
        ),
        Case(
            "rights/client",
            "A client works as a user with the worker's rules and those of connections",
            ("LQ-SAFE-1", "LQ-SCRIPT-2"),
            ("core",),
            {"role": "worker", "besides": list(FOR_CONNECTIONS)},
        ),
    ]


def run(case: Case, context: Context) -> Verdict:
    """Run a case."""
    return run_with(case, context)


def run_with(case: Case, context: Context, sources: Mapping[str, str] = MappingProxyType({})) -> Verdict:
    """Run a case with other sources of scripts, by their names: seeded bugs."""
    operations, rules = roles()[case.body["role"]]
    with context.server.client() as client:
        try:
            _make_user(client, [*rules, *case.body.get("besides", ())])
            if case.capabilities:
                return _worked(context)
            wrong = list(_wrong(client, operations, sources))
        except redis.ResponseError as error:
            raise UnjudgedError(f"the server refuses what this needs (ACL, RESTORE): {error}") from error
        finally:
            client.execute_command("ACL", "DELUSER", USER)
    if not wrong:
        return passed([f"{len(operations)} operations"])
    return failed(f"{len(wrong)} calls: {wrong[0]}", wrong[:20])


def _make_user(client: redis.Redis, rules: Sequence[str]) -> None:
    acl_rules = ["reset", "on", f">{PASSWORD}", "~leaseq:*", "-@all", *rules]
    client.execute_command("ACL", "SETUSER", USER, *acl_rules)  # type: ignore[no-untyped-call]


# Scripts


def _wrong(client: redis.Redis, operations: Sequence[str], sources: Mapping[str, str]) -> Iterator[str]:
    """Yield missing and excess rights of a user, a line each."""
    bench = VectorExecutor(client)
    try:
        for script in case_file.scripts():
            is_allowed = script in operations
            chosen = _unlike(
                each for each in case_file.load(script) if _concerns(each, is_allowed=is_allowed)
            )
            digest = bench.load(script, sources.get(script))
            for start in range(0, len(chosen), BATCH):
                batch = chosen[start : start + BATCH]
                for vector, reply, as_given in _called(bench, batch, digest):
                    if is_allowed and not agree(vector, refused(reply), vector.reply):
                        yield f"{script}: {vector.name}: it answers {str(reply)!r}"
                    if not is_allowed and operations == roles()["reader"][0]:
                        if not isinstance(reply, Exception):
                            yield f"{script}: {vector.name}: it is not refused"
                        elif not as_given:
                            yield f"{script}: {vector.name}: it is refused, and has changed something"
    finally:
        bench.close()


def _concerns(vector: Vector, *, is_allowed: bool) -> bool:
    """Return whether the rights of a role have to do with a call: it does what it is for, or it would change something."""
    if vector.server or isinstance(vector.reply, Refused):
        return False
    return is_allowed or vector.then != vector.given


def _unlike(vectors: Iterable[Vector]) -> list[Vector]:
    """Of those on one queue that change the same keys, the first."""
    found: dict[Any, Vector] = {}
    for vector in vectors:
        keys = vector.given.keys() | vector.then.keys()
        changed = frozenset(key for key in keys if vector.given.get(key) != vector.then.get(key))
        found.setdefault((vector.base, changed), vector)
    return list(found.values())


def _called(
    bench: VectorExecutor, vectors: Sequence[Vector], digest: str
) -> Iterator[tuple[Vector, Any, bool]]:
    """Each vector with what the user is answered, and whether all keys are as they were."""
    known = bench.client.connection_pool.connection_kwargs
    own_login = ["AUTH", known.get("username") or "default", known.get("password") or "none"]
    sent = [
        [
            bench.put(vector.given),
            bench.read(vector, as_digest=True),
            ["AUTH", USER, PASSWORD],
            bench.call(vector, digest),
            own_login,
            bench.read(vector, as_digest=True),
        ]
        for vector in vectors
    ]
    bench.link.send_packed_command(bench.link.pack_commands([each for one in sent for each in one]))
    answers = [[bench.answer() for _ in one] for one in sent]
    for vector, (put, before, became, reply, back, after) in zip(vectors, answers, strict=True):
        for answer in (put, before, became, back, after):
            if isinstance(answer, Exception):
                raise answer
        yield vector, reply, before == after


# A client


def _worked(context: Context) -> Verdict:
    scheme, _, rest = context.server.url.partition("://")
    url = f"{scheme}://{USER}:{PASSWORD}@{rest.rpartition('@')[2]}"
    try:
        with AdapterProcess("worker", context.adapter, url, hello_secs=context.patience) as actor:
            why = _work(actor, context.patience)
    except AdapterFaultError as error:
        raise BrokenError(str(error)) from error
    except NoAnswerError as error:
        raise UnjudgedError(str(error)) from error
    return failed(why, actor.transcript) if why else passed(actor.transcript)


def _work(actor: AdapterProcess, patience: float) -> str:
    """Return what a worker cannot do; nothing where all is right."""

    def call(method: str, **args: Any) -> Any:
        answer = actor.start("q", method, **args).answer(patience)
        if answer.kind != "ok":
            raise _RefusedError(f"{method} is answered {answer.kind} {answer.value}")
        return answer.value

    try:
        actor.open("q", "orders")
        call("add", items=[{"id": b64(b"a"), "data": b64(b"x")}, {"id": b64(b"b"), "data": b64(b"y")}])
        for method in ("release", "complete"):
            leased = call("lease", count=2, duration_ms=HOUR_MS)["leases"]
            held = [{"id": lease["id"], "token": lease["token"]} for lease in leased]
            call("extend", items=held, duration_ms=HOUR_MS)
            call(method, items=held)
    except _RefusedError as error:
        return str(error)
    return "" if len(held) == 2 else f"it leased {len(held)} items, not 2"


class _RefusedError(Exception):
    """A call of the client was refused; the message says which and how."""
