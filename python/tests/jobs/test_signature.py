"""What a job's function can be called with: told at once of arguments without names, and the same as by binding them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

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
