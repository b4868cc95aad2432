"""Values arrive as they were sent, or are refused by name (LQ-JOB-60, LQ-JOB-61): arguments, results, and what a chain hands on."""

from __future__ import annotations

import enum
import pickle
import uuid
import zoneinfo
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.job_app import JobAppFlavour

from leaseq.jobs import App, JobFailed, SerializationError
from leaseq.jobs.round_trip import are_plain, check, check_call
from leaseq.jobs.serializer import CODECS, Format
from leaseq.jobs.signature import Signature

if TYPE_CHECKING:
    from collections.abc import Iterator

NAN = float("nan")
FORMATS: list[Format] = ["json", "msgpack"]


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Name(enum.StrEnum):
    ANN = "ann"


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Pair(NamedTuple):
    left: int
    right: str


@dataclass
class Order:
    number: int
    made: datetime | None = None
    tags: list[Any] = field(default_factory=list)


@attrs.define
class Parcel:
    number: int
    weight: Decimal


class Shipment(msgspec.Struct):
    order: Order
    parcels: list[Parcel]


class Model(pydantic.BaseModel):
    number: int
    made: datetime
    price: Decimal = pydantic.Field(default=Decimal("1.50"), alias="cost")


MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORDER = Order(7, MADE, ["a"])
MODEL = Model(number=7, made=MADE, cost=Decimal("2.50"))

ANNOTATED: list[tuple[Any, Any]] = [
    (b"abc", bytes),
    (bytearray(b"abc"), bytearray),
    ({1, 2}, set[int]),
    (frozenset({"a"}), frozenset[str]),
    ((1, "a"), tuple[int, str]),
    ((1, 2, 3), tuple[int, ...]),
    ([(1, 2)], list[tuple[int, int]]),
    (Decimal("1.50"), Decimal),
    (MADE, datetime),
    (datetime(2026, 3, 1, 12), datetime),  # noqa: DTZ001 (tried)
    (date(2026, 3, 1), date),
    (time(12, 30), time),
    (timedelta(seconds=90), timedelta),
    (uuid.UUID(int=7), uuid.UUID),
    (Colour.RED, Colour),
    (Level.HIGH, Level),
    (Name.ANN, Name),
    (Pair(1, "a"), Pair),
    (ORDER, Order),
    (Parcel(1, Decimal("0.5")), Parcel),
    (Shipment(ORDER, [Parcel(1, Decimal("0.5"))]), Shipment),
    ({1: "a", -2: "b"}, dict[int, str]),
    ({uuid.UUID(int=7): 1}, dict[uuid.UUID, int]),
    ({"a": {"b": [b"abc"]}}, dict[str, dict[str, list[bytes]]]),
    (MODEL, Model),
    ([MODEL], list[Model]),
    ({"a": MODEL}, dict[str, Model | None]),
]

REFUSED: list[Any] = [
    Text("a"),
    Number(1),
    [Text("a")],
    {"a": Number(1)},
    {Text("a"): 1},
    OrderedDict(a=1),
    defaultdict(list, a=[1]),
    "\ud83d",
    {"\ud83d": 1},
    object(),
    [object()],
    1j,
    range(3),
    ORDER,
    Colour.RED,
    Level.HIGH,
    Name.ANN,
    Pair(1, "a"),
    MODEL,
    Decimal("1.5"),
    uuid.UUID(int=7),
    {1, 2},
    {"a": [{"b": (Decimal(1),)}]},
]

OF_JSON: list[Any] = [
    NAN,
    float("inf"),
    [float("-inf")],
    {"a": NAN},
    b"abc",
    MADE,
    {1: "a"},
    {None: 1},
    {True: 1},
    {1.5: 1},
]
"""Values that JSON cannot hold. MessagePack can hold some of them."""

OF_MESSAGEPACK: list[Any] = [2**64, -(2**63) - 1, [2**70]]
"""The other way round."""

NATIVE: list[Any] = [
    None,
    True,
    0,
    -(2**63),
    2**64 - 1,
    1.5,
    -0.0,
    1e300,
    "é\0",
    [],
    {},
    [[1, "a", None]],
    {"a": {"": [1.0]}},
]


@pytest.fixture(params=FORMATS)
def flavour(url: str, request: pytest.FixtureRequest) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url, format=request.param), asynchronous=False) as made:
        yield made


def same(one: Any, other: Any) -> bool:
    """Equal in type and value, by another way: as pickle writes it."""
    return type(one) is type(other) and (one == other or pickle.dumps(one) == pickle.dumps(other))


def test_annotated_values_arrive_as_they_were_sent(flavour: JobAppFlavour) -> None:
    arrived: dict[int, list[Any]] = {}
    handles = []
    for number, (value, kind) in enumerate([*ANNOTATED, *((value, Any) for value in NATIVE)]):

        def f(x: Any, *more: Any, key: Any, **others: Any) -> Any:
            arrived[others["number"]] = [x, *more, key]
            return x

        f.__annotations__ = {"x": kind, "more": kind, "key": kind, "return": kind}
        job = flavour.app.job(name=f"f{number}")(f)
        handles.append((value, job.enqueue(value, value, value, key=value, number=number)))
    assert flavour.burst() == len(handles)
    for number, (value, handle) in enumerate(handles):
        assert same(handle.result(0), value)
        assert all(same(each, value) for each in arrived[number]), value
        assert len(arrived[number]) == 4


@pytest.mark.parametrize("value", REFUSED, ids=map(str, range(len(REFUSED))))
def test_a_value_that_would_change_is_refused_by_name(flavour: JobAppFlavour, value: Any) -> None:
    @flavour.app.job(name="f")
    def f(x: Any, **others: Any) -> None: ...

    kind = type(value).__name__
    with pytest.raises(
        SerializationError, match=rf"argument ('x'|1) of f, of type {kind}|argument 1, of type {kind}"
    ):
        f.enqueue(value)
    with pytest.raises(SerializationError, match=f"argument 'y'.*, of type {kind}"):
        f.enqueue(1, y=value)
    with pytest.raises(SerializationError, match=f"argument 1.*, of type {kind}"):
        flavour.app.enqueue("elsewhere", value)
    assert flavour.app.queue().stats().ready == 0


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("fold", [0, 1])
@pytest.mark.parametrize("local", ["2026-10-25T02:30", "2026-03-29T02:30"], ids=["repeated", "skipped"])
def test_times_at_a_change_of_the_clock_arrive(flavour: JobAppFlavour, local: str, fold: int) -> None:
    moment = datetime.fromisoformat(local).replace(tzinfo=BERLIN, fold=fold)

    @flavour.app.job(name="f")
    def f(at: datetime, several: set[datetime]) -> datetime:
        assert several == {at}
        return at

    handle = f.enqueue(moment, {moment})
    flavour.burst()
    assert handle.result(0).timestamp() == moment.timestamp()


def test_a_time_whose_fold_would_be_lost_is_refused(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f")
    def f(at: datetime, of_day: time | None = None) -> None: ...

    moment = datetime.fromisoformat("2026-10-25T02:30").replace(fold=1)
    with pytest.raises(SerializationError, match="argument 'at'"):
        f.enqueue(moment)
    with pytest.raises(SerializationError, match="argument 'of_day'"):
        f.enqueue(moment.replace(fold=0), moment.timetz())


def test_what_one_format_lacks_is_refused_there_and_kept_in_the_other(flavour: JobAppFlavour) -> None:
    form = flavour.app.program.clients.settings.form
    arrived: list[Any] = []

    @flavour.app.job(name="f", retries=0)
    def f(x: Any) -> Any:
        arrived.append(x)
        return x

    for lacking, values in (("json", OF_JSON), ("msgpack", OF_MESSAGEPACK)):
        for value in values:
            if form == lacking:
                match = rf"argument 'x' of f, of type .* in {form}: .*; annotate parameter 'x'"
                with pytest.raises(SerializationError, match=match):
                    f.enqueue(value)
            else:
                handle = f.enqueue(value)
                flavour.burst()
                assert same(arrived.pop(), value)
                assert same(handle.result(0), value)
    assert not arrived


def test_a_result_that_would_change_is_a_dead_letter_by_name(flavour: JobAppFlavour) -> None:
    values = [value for value in REFUSED if not isinstance(value, str) or value.isascii()]
    handles = []
    for number, value in enumerate(values):
        handles.append(flavour.app.job(name=f"f{number}")(lambda value=value: value).enqueue())
    assert flavour.burst() == len(values)
    for number, (value, handle) in enumerate(zip(values, handles, strict=True)):
        match = rf"the result of f{number}, of type {type(value).__name__}, would not arrive .*annotate what f{number} returns|the result cannot be written"
        with pytest.raises(JobFailed, match=match) as caught:
            handle.result(0)
        assert caught.value.attempt == 1


def test_no_result_is_looked_at_that_nobody_gets(flavour: JobAppFlavour) -> None:
    flavour.app.job(name="f", keep=None)(lambda: {1, 2}).enqueue()
    assert flavour.burst() == 1
    assert flavour.app.queue().stats().dead == 0


def test_a_chain_hands_on_what_was_returned(flavour: JobAppFlavour) -> None:
    arrived: list[Any] = []

    @flavour.app.job(name="make", keep=None)
    def make() -> tuple[int, Decimal]:
        return 1, Decimal("1.50")

    @flavour.app.job(name="take")
    def take(pair: tuple[int, Decimal], more: set[int]) -> int:
        arrived.append((pair, more))
        return 1

    @flavour.app.job(name="untyped")
    def untyped(pair: Any) -> None: ...

    chain = flavour.app.chain(make.call()).then(take.partial({7})).enqueue()
    flavour.burst()
    assert chain.result(0) == 1
    assert arrived == [((1, Decimal("1.50")), {7})]
    with pytest.raises(SerializationError, match="argument 'more' of take, of type tuple"):
        take.partial((7,))  # type: ignore[arg-type]
    for first in (make, make.with_options(keep=60)):
        lost = flavour.app.chain(first.call()).then(untyped.partial()).enqueue()
        flavour.burst()
        assert "handed on to untyped, of type tuple" in lost.stages[0].info().error


def test_a_serializer_takes_what_it_takes(url: str) -> None:
    class Pickle:
        name = "pickle"
        dumps = staticmethod(pickle.dumps)
        loads = staticmethod(pickle.loads)

    app = App(url, serializer=Pickle())
    app.job(name="f")(lambda x: x)
    with JobAppFlavour(app, asynchronous=False) as flavour:
        handle = app.enqueue("f", {1, 2})
        flavour.burst()
        assert handle.result(0) == {1, 2}


def test_a_model_that_does_not_fit_is_a_dead_letter(flavour: JobAppFlavour) -> None:
    arrived: list[Any] = []

    @flavour.app.job(name="f")
    def f(x: Model) -> None:
        arrived.append(x)

    flavour.app.enqueue("f", {"number": 7, "made": "2026-03-01T12:00:00Z", "cost": "2.50"})
    bad = flavour.app.enqueue("f", {"number": "seven"})
    flavour.burst()
    assert arrived == [MODEL]
    with pytest.raises(JobFailed, match="argument 'x': 2 validation errors for Model"):
        bad.result(0)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**66), 2**66),
    st.floats(),
    st.text(),
    st.binary(max_size=5),
    st.decimals(allow_nan=False),
    st.datetimes(timezones=st.just(UTC)),
    st.uuids(),
    st.sampled_from([Colour.RED, Level.HIGH, Name.ANN, Text("a"), Number(1)]),
)
KEYS = st.one_of(st.text(), st.integers(), st.booleans(), st.none())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
        st.dictionaries(st.text(), inner, max_size=3),
        st.frozensets(st.integers(), max_size=3),
    ),
    max_leaves=6,
)


def exactly(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return exactly(list(one.items()), list(other.items()))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(exactly, one, other))
    return bool(one == other or one != one)  # noqa: PLR0124 (NaN)


@settings(max_examples=300, deadline=None)
@given(VALUES, st.sampled_from(FORMATS))
def test_whatever_is_taken_arrives(value: Any, form: Format) -> None:
    try:
        check(value, None, form, "it", "do")
    except SerializationError:
        assert not are_plain((value,))
        return
    assert exactly(CODECS[form].decode(CODECS[form].encode(value)), value)


def test_what_differs_is_named() -> None:
    def f(order: Order) -> None: ...

    f.__annotations__ = {"order": Order}
    cases: list[tuple[Any, str]] = [
        (Order(7, tags=[(1, 2)]), r"\.tags\[0\] would be list, not tuple"),
        (Order(7.5), "it cannot be read|Expected `int`, got `float`"),  # type: ignore[arg-type]
    ]
    for value, reason in cases:
        with pytest.raises(
            SerializationError, match=f"argument 'order' of f, of type Order.*{reason}.*serializer"
        ):
            check_call("f", [value], {}, Signature(f), "json")
    cases = [
        ({"a": [{1: 2}]}, r"the keys of \['a'\]\[0\]\[0\] would be str, not int"),
        (NAN, "it would be NoneType, not float"),
        ({1}, "it would be list, not set"),
    ]
    for value, reason in cases:
        with pytest.raises(SerializationError, match=f"{reason}; use an App that has f"):
            check_call("f", [value], {}, None, "json")


def test_a_whole_number_that_a_float_does_not_keep_is_refused_for_one(flavour: JobAppFlavour) -> None:
    @flavour.app.job(name="f")
    def f(x: float) -> float:
        return x

    with pytest.raises(SerializationError, match="x"):
        flavour(f, "enqueue", 2**53 + 1)
    handle = flavour(f, "enqueue", 2**53)
    assert flavour.burst() == 1
    assert flavour(handle, "result", 0) == 2.0**53
