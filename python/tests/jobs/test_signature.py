"""Arguments that fit a job's function: the quick check of positional arguments agrees with `inspect.Signature.bind`."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from support import annotated_functions as functions

from leaseq.jobs import App
from leaseq.jobs.annotations import awaited, resolved
from leaseq.jobs.signature import Signature

if TYPE_CHECKING:
    from collections.abc import Callable


def nothing() -> None: ...
def one(x: Any) -> None: ...
def some(x: Any, /, y: int, z: int = 3) -> None: ...
def rest(x: Any, *more: int) -> None: ...
def named(x: Any, *, k: int) -> None: ...
def everything(x: int, *more: Any, k: int = 1, **named: int) -> None: ...
def only_named(*, k: int = 2) -> None: ...


@pytest.mark.parametrize(
    "annotation", [Coroutine[Any, Any, float], Awaitable[float], "Coroutine[str, int, float]", float]
)
def test_the_type_of_a_result_is_that_in_the_end(annotation: Any) -> None:
    def function() -> Any: ...

    function.__annotations__ = {"return": annotation}
    assert awaited(resolved(function, annotation)) is float


@pytest.mark.parametrize(
    "function", [nothing, one, some, rest, named, everything, only_named], ids=lambda each: str(each.__name__)
)
@pytest.mark.parametrize("count", range(5))
def test_arguments_without_names_are_taken_as_python_takes_them(
    function: Callable[..., None], count: int
) -> None:
    signature, args = Signature(function), list(range(count))
    try:
        bound = inspect.signature(function).bind(*args)
    except TypeError:
        with pytest.raises(TypeError):
            signature.check("f", args, {})
        with pytest.raises(TypeError):
            signature.bind(args, {})
    else:
        signature.check("f", args, {})
        assert signature.bind(args, {}) == (bound.args, bound.kwargs)


@pytest.mark.parametrize(
    ("function", "args", "name"),
    [(some, [0, "x"], "y"), (rest, [0, 1, 2, "x"], "more"), (everything, ["x"], "x")],
    ids=["second", "rest", "first"],
)
def test_each_argument_is_of_the_type_of_its_place(
    function: Callable[..., None], args: list[Any], name: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"argument '{name}': Expected `int`, got `str`"):
        Signature(function).bind(args, {})


TEXT = "2026-03-01T12:00:00Z"
MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("function", [functions.one_of_checker, functions.wrapped, functions.partial])
def test_each_annotation_is_resolved_by_itself(function: Any) -> None:
    signature = Signature(function)
    order = functions.Order(7, MADE)
    expected = (MADE, "1.50", order)
    assert signature.bind([TEXT, "1.50", {"number": 7, "made": TEXT}], {}) == (expected, {})
    assert signature.bind([TEXT, "1.50"], {"order": {"number": 7, "made": TEXT}})[0] == expected
    assert signature.result is not None
    assert signature.result([TEXT]) == [MADE]
    assert signature.unresolved == {"price": "Money"}


def test_what_is_inside_of_other_types_is_resolved() -> None:
    assert Signature(functions.callee).bind([TEXT, "1.50"], {}) == ((MADE, "1.50"), {})
    partly = Signature(functions.partly)
    assert partly.bind([{"a": "1.50"}, TEXT], {}) == (({"a": "1.50"}, MADE), {})
    assert partly.unresolved == {"prices": "dict[str, Money]"}
    order = {"number": 7, "made": TEXT}
    ((one,), (other,)), _ = Signature(functions.nested).bind([[order], [order]], {})
    assert one == other == functions.Order(7, MADE)
    assert Signature(functions.result_of_checker).unresolved == {"return": "Money"}


@pytest.mark.parametrize("function", functions.WITH_CONTEXT)
def test_a_context_is_found_in_every_form(function: Any) -> None:
    signature = Signature(function)
    assert signature.takes_context
    assert signature.bind([TEXT], {}) == ((MADE,), {})
    assert "ctx" not in signature.unresolved


@pytest.mark.parametrize("function", [functions.no_context, functions.no_context_of_checker])
def test_other_first_parameters_are_no_context(function: Any) -> None:
    assert not Signature(function).takes_context


def test_what_cannot_be_resolved_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    app = App()
    with caplog.at_level(logging.WARNING, "leaseq.jobs"):
        app.job(name="orders")(functions.one_of_checker)
        app.function("orders").call(TEXT, "1.50", {})
        app.job(name="clear")(functions.alias)
    (record,) = caplog.records
    assert record.getMessage().startswith("job orders: these annotations cannot be resolved at run time")
    assert "price: Money" in record.getMessage()


def test_a_key_that_is_no_str_comes_back_where_it_is_annotated() -> None:
    def f(counts: dict[int, str]) -> None: ...

    f.__annotations__["counts"] = dict[int, str]
    assert Signature(f).bind([{"1": "a"}], {}) == (({1: "a"},), {})
