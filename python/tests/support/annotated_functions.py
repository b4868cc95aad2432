"""Functions whose annotations can be resolved in part: names that only a type checker imports stand beside others."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 (resolved at run time)
from typing import TYPE_CHECKING, Annotated, Any, Optional

import leaseq.jobs  # noqa: TC001 (resolved at run time)
from leaseq.jobs import Context as Ctx

if TYPE_CHECKING:
    from decimal import Decimal as Money

    import leaseq.jobs as jobs_of_checker
    from leaseq.jobs import Context

Alias = Ctx


@dataclass
class Order:
    number: int
    made: datetime


def one_of_checker(made: datetime, price: Money, order: Order) -> list[datetime]:
    return [made, order.made]


def result_of_checker(made: datetime) -> Money:
    raise NotImplementedError


def partly(prices: dict[str, Money], made: datetime) -> datetime:
    return made


def nested(orders: list[Order], other: list["Order"]) -> None: ...  # noqa: UP037 (quotes within)


def wrapping(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Callee:
    def __call__(self, made: datetime, price: Money) -> datetime:
        return made


wrapped = wrapping(one_of_checker)
partial = functools.partial(one_of_checker)
callee = Callee()


def plain(ctx: Ctx, made: datetime) -> None: ...
def alias(ctx: Alias, made: datetime) -> None: ...
def dotted(ctx: leaseq.jobs.Context, made: datetime) -> None: ...
def annotated(ctx: Annotated[Ctx, "note"], made: datetime) -> None: ...
def optional(ctx: Ctx | None, made: datetime) -> None: ...
def old_optional(ctx: Optional[Ctx], made: datetime) -> None: ...  # noqa: UP045 (tried)
def quoted(ctx: "Ctx", made: datetime) -> None: ...  # noqa: UP037 (tried)
def of_checker(ctx: Context, made: datetime) -> None: ...
def optional_of_checker(ctx: Context | None, made: datetime) -> None: ...
def annotated_of_checker(ctx: Annotated[Context, 1], made: datetime) -> None: ...
def dotted_of_checker(ctx: jobs_of_checker.Context, made: datetime) -> None: ...
def other_of_checker(ctx: Ctx, made: datetime, price: Money | None = None) -> None: ...


def no_context(contexts: list[Ctx], made: datetime) -> None: ...
def no_context_of_checker(price: Money, made: datetime) -> None: ...


WITH_CONTEXT = [
    plain,
    alias,
    dotted,
    annotated,
    optional,
    old_optional,
    quoted,
    of_checker,
    optional_of_checker,
    annotated_of_checker,
    dotted_of_checker,
    other_of_checker,
    wrapping(alias),
    functools.partial(alias),
]
