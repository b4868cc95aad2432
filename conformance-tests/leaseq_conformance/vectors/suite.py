"""The vectors as a suite: a case for each script, which takes all of its vectors.

Each vector is run twice under RESP2, once more twice under RESP3. Beside the reply and the whole keyspace it is checked that
the call's keys are of one slot and that it touched no other key.
"""

from __future__ import annotations

import itertools
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import redis

from leaseq_conformance.cases import Case, Context
from leaseq_conformance.vectors import case_file
from leaseq_conformance.vectors import vector as format_
from leaseq_conformance.vectors.executor import BATCH, VectorExecutor, slots
from leaseq_conformance.vectors.monitor import Watch
from leaseq_conformance.vectors.rules import ALWAYS, TOGETHER
from leaseq_conformance.verdict import UnjudgedError, Verdict, failed, passed

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from leaseq_conformance.vectors.compare import Run
    from leaseq_conformance.vectors.vector import Vector

CROSS_GROUP: Final = "LEASEQ_CROSS_GROUP"
SHOWN: Final = 5
"""Failures of one case that are reported in full."""


def cases() -> Sequence[Case]:
    """A case for each script."""
    return [_case(script) for script in case_file.scripts()]


def _case(script: str) -> Case:
    name = f"vectors/{script}"
    vectors = case_file.load(script)
    rules = sorted(
        {rule for vector in vectors for rule in vector.rules} | {*ALWAYS, *TOGETHER.get(script, ())}
    )
    return Case(
        name=name,
        title=f"{script}: {len(vectors)} calls, their replies and the keys that they leave",
        rules=tuple(rules),
        capabilities=(),
        body={
            "script": script,
            "file": f"cases/vectors/{script}.yaml",
            "vectors": [vector.name for vector in vectors],
        },
    )


def run(case: Case, context: Context) -> Verdict:
    """Run the vectors of a script."""
    return run_with(case, context)


def run_with(case: Case, context: Context, sources: Mapping[str, str] = MappingProxyType({})) -> Verdict:
    """Run them with other sources of scripts, by their names: seeded bugs."""
    vectors = case_file.load(case.name.partition("/")[2])
    differences = _differences(context, vectors, sources)
    try:
        # of a seeded bug, one call that shows it is enough
        wrong = list(itertools.islice(differences, 1 if sources else None))
    except redis.ResponseError as error:
        raise UnjudgedError(
            f"the server refuses what vectors need (CONFIG, MONITOR, RESTORE): {error}"
        ) from error
    finally:
        differences.close()
    if not wrong:
        return passed([f"{len(vectors)} vectors"])
    return failed(f"{len(wrong)} of {len(vectors)} vectors: {wrong[0]}", wrong[: SHOWN * 4])


def _differences(context: Context, vectors: Sequence[Vector], sources: Mapping[str, str]) -> Generator[str]:
    yield from (f"{vector.name}: keys of several slots" for vector in vectors if not of_one_slot(vector))
    with context.server.client(protocol=2) as client:
        yield from mismatches(client, vectors, sources, watched=True)
    with context.server.client(protocol=3) as client:
        yield from (
            f"under RESP3, {difference}" for difference in mismatches(client, vectors, sources, watched=False)
        )


def mismatches(
    client: redis.Redis,
    vectors: Sequence[Vector],
    sources: Mapping[str, str] = MappingProxyType({}),
    *,
    watched: bool,
) -> Generator[str]:
    """Yield a line for each difference from the vectors."""
    executor = VectorExecutor(client)
    try:
        if not watched:
            yield from _judged(executor.run(vectors, sources))
            return
        with Watch(client) as watch:
            for start in range(0, len(vectors), BATCH):
                runs = list(executor.run(vectors[start : start + BATCH], sources))
                yield from _judged(runs)
                yield from (
                    f"{difference} is touched and was not passed" for difference in watch.undeclared(runs)
                )
    finally:
        executor.close()


def _judged(runs: Any) -> Iterator[str]:
    run: Run
    for run in runs:
        if difference := run.wrong():
            yield f"{run.vector.name}: {difference}"


def of_one_slot(vector: Vector) -> bool:
    """Return whether the keys of the call are of one slot, or it is the call that is refused since they are not."""
    return len(slots(vector)) <= 1 or vector.reply == format_.Refused(CROSS_GROUP)
