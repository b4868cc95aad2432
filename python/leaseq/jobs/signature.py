"""The parameters of a job's function, and their types."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, islice, repeat
from typing import Any

import msgspec

from leaseq.errors import BadTypeError
from leaseq.jobs.annotations import Unresolved, awaited, convertible, is_context, resolved, signature_of
from leaseq.jobs.options import OPTION_NAMES
from leaseq.jobs.serializer import converted

_PLACES = frozenset({inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})
_REST = inspect.Parameter.VAR_POSITIONAL
_NAMED_REST = inspect.Parameter.VAR_KEYWORD


class Signature:
    """The parameters and the result of a function. Types that msgspec cannot make from JSON are left as they come."""

    def __init__(self, function: Callable[..., Any]) -> None:
        signature = signature_of(function)
        parameters = list(signature.parameters.values())
        named = {each.name: resolved(function, each.annotation) for each in parameters}
        self.takes_context = bool(parameters) and is_context(named[parameters[0].name])
        if self.takes_context:
            del named[parameters.pop(0).name]
        result = resolved(function, signature.return_annotation)
        self.unresolved = {
            name: each.text
            for name, each in {**named, "return": result}.items()
            if isinstance(each, Unresolved)
        }
        """Annotations that say nothing at run time, by the names of their parameters."""
        self._signature = signature.replace(parameters=parameters)
        self._kinds = {name: convertible(each) for name, each in named.items()}
        self._plain = not any(self._kinds.values())
        self.positional = _positional(parameters)
        """The numbers of arguments that it takes without names."""
        kinds = [(each.name, self._kinds[each.name]) for each in parameters if each.kind in _PLACES]
        rest = [(each.name, self._kinds[each.name]) for each in parameters if each.kind is _REST]
        self._in_order = partial(chain, kinds, *map(repeat, rest))
        self._others = next((self._kinds[each.name] for each in parameters if each.kind is _NAMED_REST), None)
        self.returned = convertible(awaited(result))
        """The type of a result, None if it stays as it comes."""
        self.result = None if self.returned is None else self._converted_result
        """Makes a result of the type that the function names. Raises msgspec.ValidationError."""

    def check(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raises BadTypeError for arguments that the function, of this name among jobs, does not take."""
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            first = next(iter(self._signature.parameters.values()), None)
            hint = ""
            if first is not None and first.name in {"ctx", "context"} and first.annotation is first.empty:
                hint = f"; for the job's context, annotate it: {first.name}: leaseq.jobs.Context"
            if options := [
                each for each in kwargs if each in OPTION_NAMES and each not in self._signature.parameters
            ]:
                hint = f"; {options[0]!r} is an option: with_options({options[0]}=...).enqueue(...)"
            raise BadTypeError(f"{name} is not called like that: {error}{hint}") from error

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, of the types that the function names. Raises TypeError, msgspec.ValidationError."""
        if not kwargs and len(args) in self.positional:
            return tuple(args) if self._plain else self._places(args), {}
        bound = self._signature.bind(*args, **kwargs)
        if self._plain:
            return bound.args, bound.kwargs
        for name, value in bound.arguments.items():
            kind = self._kinds[name]
            if kind is not None:
                bound.arguments[name] = self._converted(name, value, kind)
        return bound.args, bound.kwargs

    def place(self, number: int) -> tuple[str, Any]:
        """The name and the type of an argument without a name; its type is None if it stays as it comes."""
        return next(islice(self._in_order(), number, None), ("", None))

    def named(self, name: str) -> Any:
        """The type of an argument by name, None if it stays as it comes."""
        return self._kinds.get(name, self._others)

    def _places(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Arguments without names, of the types of their places."""
        return tuple(
            value if kind is None else _convert(name, value, kind)
            for value, (name, kind) in zip(args, self._in_order(), strict=False)
        )

    def _converted(self, name: str, value: Any, kind: Any) -> Any:
        how = self._signature.parameters[name].kind
        if how is inspect.Parameter.VAR_POSITIONAL:
            return tuple(_convert(name, each, kind) for each in value)
        if how is inspect.Parameter.VAR_KEYWORD:
            return {key: _convert(key, each, kind) for key, each in value.items()}
        return _convert(name, value, kind)

    def _converted_result(self, value: Any) -> Any:
        return converted(value, self.returned)


def _positional(parameters: Sequence[inspect.Parameter]) -> range:
    """Return the numbers of arguments that the function takes without names; binding them, which is slow, checks no more."""
    least = most = 0
    for each in parameters:
        needed = each.default is inspect.Parameter.empty
        if each.kind is _REST:
            most = sys.maxsize - 1
        elif each.kind is inspect.Parameter.KEYWORD_ONLY and needed:
            return range(0)
        elif each.kind in _PLACES:
            least, most = least + needed, most + 1
    return range(least, most + 1)


def _convert(name: str, value: Any, kind: Any) -> Any:
    try:
        return converted(value, kind)
    except msgspec.ValidationError as error:
        message = f"argument {name!r}: {error}"
        raise msgspec.ValidationError(message) from error
