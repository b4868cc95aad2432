"""The annotations of a function. If one cannot be resolved at run time, the others still can."""

import inspect
import logging
import re
import sys
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec

from leaseq.callables import layers
from leaseq.jobs.context import Context
from leaseq.jobs.serializer import has_model

logger: Final = logging.getLogger("leaseq.jobs")

_CONTEXT: Final = re.compile(rf"\b{Context.__name__}\b")


class Unresolved:
    """An annotation that cannot be resolved at run time, such as a name that is imported under TYPE_CHECKING."""

    def __init__(self, text: str) -> None:
        self.text = text


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature, with the annotations as they are written. Raises TypeError, ValueError if there is none."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(function)


def resolved(function: Callable[..., Any], annotation: Any) -> Any:
    """Return the type that an annotation names; Unresolved if that cannot be found."""
    if annotation is inspect.Parameter.empty:
        return annotation
    source = next((each for each in reversed(list(layers(function))) if hasattr(each, "__globals__")), None)
    known = {each.__name__: each for each in getattr(source, "__type_params__", ())}

    def stand_in() -> None: ...

    stand_in.__annotations__ = {"it": annotation}
    try:
        found = typing.get_type_hints(
            stand_in, getattr(source, "__globals__", {}), known, include_extras=True
        )["it"]
    except Exception:  # noqa: BLE001 (an annotation can be any expression)
        return Unresolved(annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))
    return None if found is type(None) else found


def convertible(annotation: Any) -> Any:
    """The type, if values of it can be made of JSON; None for what stays as it comes."""
    if annotation in {inspect.Parameter.empty, Any, object, None} or isinstance(
        annotation, Unresolved | typing.TypeVar
    ):
        return None
    try:
        msgspec.json.schema(annotation, schema_hook=_schema_of_model)
    except Exception:  # noqa: BLE001 (whatever it is: no type of data)
        return None
    return annotation


def _schema_of_model(kind: type) -> dict[str, Any]:
    if has_model(kind):
        return {"type": "object"}
    raise NotImplementedError


def awaited(annotation: Any) -> Any:
    """Return the type that a Coroutine or Awaitable of an annotation gives in the end."""
    origin = typing.get_origin(annotation)
    if isinstance(origin, type) and hasattr(origin, "__await__"):
        return typing.get_args(annotation)[-1]
    return annotation


def is_context(annotation: Any) -> bool:
    """Return whether an annotation names Context: itself, or in Annotated, Optional or an alias, or by this name if it is unresolved."""
    if isinstance(annotation, Unresolved):
        return _CONTEXT.search(annotation.text) is not None
    annotation = getattr(annotation, "__value__", annotation)
    if typing.get_origin(annotation) in {Annotated, typing.Union, types.UnionType}:
        return any(map(is_context, typing.get_args(annotation)))
    return annotation is Context


def warn(function: str, unresolved: dict[str, str]) -> None:
    """Write a warning about annotations that say nothing at run time, by the names of their parameters."""
    if unresolved:
        what = ", ".join(f"{name}: {text}" for name, text in unresolved.items())
        logger.warning(
            "job %s: these annotations cannot be resolved at run time, so their values are not converted: %s; import the names"
            " outside of TYPE_CHECKING, at the top of the module",
            function,
            what,
        )
