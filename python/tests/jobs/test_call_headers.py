"""`app.headers`: functions that give headers to jobs as they are enqueued."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest
from support.job_app import JobAppFlavour

from leaseq.errors import BadArgumentError, BadTypeError
from leaseq.jobs import App, Context

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from leaseq.jobs import Call

tenant: ContextVar[str] = ContextVar("tenant of a test", default="none")


@pytest.fixture(params=["threads", "asyncio"])
def flavour(url: str, request: pytest.FixtureRequest) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=request.param == "asyncio") as made:
        yield made


@pytest.fixture
def seen(flavour: JobAppFlavour) -> list[tuple[int, Mapping[str, str]]]:
    """The argument and the headers of each job that ran, of the function "f", whose result is its argument."""
    noted: list[tuple[int, Mapping[str, str]]] = []

    @flavour.app.job(name="f")
    def f(ctx: Context, number: int) -> int:
        noted.append((number, dict(ctx.headers)))
        return number

    return noted


def test_each_way_of_enqueuing_has_them(
    flavour: JobAppFlavour, seen: list[tuple[int, Mapping[str, str]]]
) -> None:
    app, f = flavour.app, flavour.app.functions["f"]
    calls: list[tuple[str, str, Any]] = []

    @app.headers
    def number_it(call: Call[Any]) -> Mapping[str, str]:
        calls.append((call.function, call.options.queue, tuple(call.args)))
        return {"number": str(len(calls)), "tenant": "of a source"}

    @app.headers
    def name_tenant(_: Call[Any]) -> Mapping[str, str]:
        return {"tenant": tenant.get()}

    own = f.with_options(headers={"tenant": "own", "more": "yes"})
    flavour(own, "enqueue", 1)
    flavour(app, "enqueue", "f", 2)
    flavour(app, "enqueue_many", [f.call(3), own.call(4)])
    chain = flavour.side(app).chain(f.call(5)).then(own.partial())
    flavour.run(chain.enqueue()) if flavour.asynchronous else chain.enqueue()
    flavour.burst()
    assert [call[0:2] for call in calls] == [("f", "default")] * 6
    assert sorted(seen, key=lambda job: (job[0], len(job[1]))) == [
        (1, {"number": "1", "tenant": "own", "more": "yes"}),
        (2, {"number": "2", "tenant": "none"}),
        (3, {"number": "3", "tenant": "none"}),
        (4, {"number": "4", "tenant": "own", "more": "yes"}),
        (5, {"number": "6", "tenant": "none"}),
        (5, {"number": "5", "tenant": "own", "more": "yes"}),
    ]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (KeyError("no tenant"), KeyError),
        (None, BadTypeError),
        ({"a b": "c"}, BadArgumentError),
        ({"number": 7}, BadTypeError),
    ],
    ids=["raises", "nothing", "a bad name", "a number"],
)
def test_nothing_is_enqueued_when_one_fails(
    flavour: JobAppFlavour, seen: list[tuple[int, Mapping[str, str]]], given: Any, error: type[Exception]
) -> None:
    app, f = flavour.app, flavour.app.functions["f"]

    @app.headers
    def second_only(call: Call[Any]) -> Any:
        if call.args == (1,):
            return {}
        if isinstance(given, Exception):
            raise given
        return given

    with pytest.raises(error) as one:
        flavour(f, "enqueue", 2)
    with pytest.raises(error):
        flavour(app, "enqueue_many", [f.call(1), f.call(2)])
    if given is None:
        assert "second_only gives headers to calls, and returned NoneType" in str(one.value)
    assert flavour.burst() == 0
    assert seen == []


def test_what_gives_no_headers_is_refused(url: str) -> None:
    async def later(_: Call[Any]) -> Mapping[str, str]:
        return {}

    def piecewise(_: Call[Any]) -> Iterator[str]:
        yield "tenant"

    app: Any = App(url)
    for source, why in (
        ("tenant", "takes a Call; str cannot be called"),
        (later, "make it a `def` function"),
        (piecewise, "generator"),
        (lambda _call, _more: {}, "called with a Call alone"),
    ):
        with pytest.raises(BadTypeError, match=why):
            app.headers(source)
