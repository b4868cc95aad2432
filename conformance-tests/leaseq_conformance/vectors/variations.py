"""The ordinary calls once more: with long numbers, on a full server, and where a key, a record or the state is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leaseq_conformance.manifest import SCRIPTS
from leaseq_conformance.vectors import damage, malformed, refused, shown
from leaseq_conformance.vectors.build import like, vector
from leaseq_conformance.vectors.build import refused as refused_vector
from leaseq_conformance.vectors.rules import RULES
from leaseq_conformance.vectors.vector import Dump, Refused, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq_conformance.vectors.builder import World
    from leaseq_conformance.vectors.samples import Sample

RECORDLESS: Final = {"add", "configure", "deep_clean", "list", "purge", "remove", "settle", "stats"}
"""These read no record, or repair it."""
READ_BY: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "inspect": {"r3 on full": ("items", "meta", "ready", "delayed", "leased", "dead", "state")},
    "list": {
        f"{name} 0 256 {order} on full": (name,)
        for name in ("ready", "delayed", "leased", "dead")
        for order in ("forward", "backward")
    },
    "outcome": {
        "r1 on rich": ("items", "meta", "ready", "delayed", "leased", "dead", "kept", "state", "result:r1")
    },
    "settle": {"settle on full": ("state", "wake"), "settle on roomy": ("items", "ready", "dead", "room")},
    "stats": {"stats on rich": ("items", "ready", "delayed", "leased", "dead", "kept", "state", "counters")},
}
"""The keys that calls which need not change them look at."""
ZEROES: Final = {
    **dict.fromkeys(
        ("complete_with", "configure", "extend", "inspect", "release", "remove", "revive"),
        (0,),
    ),
    **dict.fromkeys(("add", "complete"), (0, 3)),
    "complete_and_lease": (0, 1, 2),
    "lease": (0, 1),
    "lease_any": (0, 1, 2),
    "light_clean": (0,),
    "list": (1, 2),
    "outcome": (0,),
    "purge": (0, 1),
}
"""Arguments that may be written with leading zeroes, to 16 digits."""


def digits(script: str, world: World, sample: Sample) -> Iterator[Vector]:
    """Numbers with leading zeroes."""
    made = vector(script, world, "settled", sample, ("LQ-CALL-2",))
    for at in ZEROES.get(script, ()):
        argv = [*made.argv[:at], made.argv[at].zfill(16), *made.argv[at + 1 :]]
        yield like(made, argv=argv, note=f"16 digits in argument {at}")


def full(script: str, ordinary: list[Vector]) -> Iterator[Vector]:
    """On a server that has reached its memory limit; one for each set of keys that a call changes."""
    for made in shown.varied(ordinary):
        rules = ("LQ-HANDOFF-5",) if script == "complete_with" else RULES[script]
        if script == "add":
            error = Refused("LEASEQ_OUT_OF_MEMORY")
            yield like(
                made,
                reply=error,
                then=made.given,
                again=error,
                then_again=made.given,
                note="full server",
                full=True,
            )
        else:
            yield like(made, note="full server", full=True, rules=rules)


def wrong_types(script: str, ordinary: list[Vector]) -> Iterator[Vector]:
    """A key that a call would change has another type."""
    error = Refused("LEASEQ_WRONG_TYPE")
    for made in ordinary:
        for key in READ_BY.get(script, {}).get(made.name, ()):
            given = {**made.given, key: malformed.wrong_type(key)}
            yield _refused(made, given, error, f"{key} of another type", "LQ-ERROR-3")
    for made in shown.varied(ordinary):
        changed = {
            key for key in made.given.keys() | made.then.keys() if made.given.get(key) != made.then.get(key)
        }
        for key in sorted(changed):
            bare = key.removeprefix("other:")
            given = {**made.given, key: malformed.wrong_type(bare)}
            if script == "lease_any" and bare == "wake" and not shown.leased_from(made, key):
                # it would only be settled: that it cannot be harms nobody
                then, again = ({**dump, key: given[key]} for dump in (made.then, made.then_again))
                rules: tuple[str, ...] = ("LQ-ANY-2",)
                if made.then[key] == made.then_again[key] and shown.gives_twice(made):
                    yield like(
                        made,
                        given=given,
                        then=then,
                        then_again=again,
                        note=f"{key} of another type",
                        rules=rules,
                    )
                continue
            yield _refused(made, given, error, f"{key} of another type", "LQ-ERROR-3", "LQ-ERROR-1")


def bad_records(script: str, ordinary: list[Vector], rich: World) -> Iterator[Vector]:
    """The record of an item that a call would move is none."""
    if script in RECORDLESS:
        return
    ways = set()
    for made in ordinary:
        for item_id in shown.read(made) if script == "inspect" else shown.moved(made):
            if (way := shown.way(made, item_id)) not in ways:
                ways.add(way)
                chosen = malformed.BAD_RECORDS if len(ways) == 1 else malformed.TELLING
                for title in chosen:
                    packed = malformed.BAD_RECORDS[title]
                    yield _spoiled(made, item_id, title, packed)
    if script in {"outcome", "complete_with"}:
        for title, dump, reader, argv, more in damage.spoiled_outcomes(rich):
            if reader == script:
                yield refused_vector(
                    script, f"outcome {title}", "rich", dump, argv, "FORMAT", ("LQ-OUTCOME-8",), more=more
                )


def _spoiled(made: Vector, item_id: bytes, title: str, packed: bytes) -> Vector:
    meta: Any = made.given.get("meta", {})
    given = {**made.given, "meta": {**meta, item_id: packed}}
    error = Refused("LEASEQ_FORMAT")
    note = f"record of {item_id.decode('latin-1')} {title}"
    return _refused(made, given, error, note, "LQ-ERROR-1")


def bad_states(script: str, settled: World) -> Iterator[Vector]:
    """A state that is none, or says what no clock gave."""
    if "state" not in [key.removeprefix("other:") for key in SCRIPTS[script].keys] and script != "lease_any":
        return
    worse = {} if script == "deep_clean" else malformed.WRONG_STATES
    argv = refused.PLAIN[script]
    more = refused.more_of(script, argv)
    for title, packed in {**malformed.BAD_STATES, **worse}.items():
        dump = {**settled.stored(), "state": packed}
        yield refused_vector(
            script, f"state {title}", "settled", dump, argv, "FORMAT", ("LQ-ERROR-1",), more=more
        )


def _refused(made: Vector, given: Dump, error: Refused, note: str, *rules: str) -> Vector:
    """The call refused on another keyspace, again and again, and nothing changed."""
    return like(
        made, given=given, reply=error, then=given, again=error, then_again=given, note=note, rules=rules
    )
