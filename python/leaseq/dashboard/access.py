"""The rights of a visitor: which pages and actions a request may use, and whose name the audit log gets."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

Action = Literal[
    "read",
    "data",
    "revive",
    "purge",
    "remove",
    "release",
    "promote",
    "edit",
    "pause",
    "resume",
    "configure",
    "trigger",
    "pause_schedule",
    "resume_schedule",
    "quiet_worker",
    "resume_worker",
    "stop_worker",
]
"""An action of a visitor: reading the pages, seeing the data of items, or a change."""

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)

Allow = Callable[[Request, Action], bool | Awaitable[bool]]
"""Returns whether a request may do an action, as a function or an `async def`."""

UserName = Callable[[Request], str | Awaitable[str]]
"""Returns the name of the user of a request, for the audit log."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The user of one request.

    Attributes:
        user: the name; "" if it is not known.
        allowed: the actions that this request may do.
    """

    user: str
    allowed: frozenset[Action]

    def may(self, action: Action) -> bool:
        """Return whether the request may do this."""
        return action in self.allowed


def read_only(_request: Request, action: Action) -> bool:
    """Allow reading the pages, and nothing else."""
    return action == "read"


def name_in_scope(request: Request) -> str:
    """Return the name of the user that an authentication of Starlette's kind has put into the scope; "" without one."""
    user = request.scope.get("user")
    return str(getattr(user, "display_name", "")) if getattr(user, "is_authenticated", False) else ""


async def visitor_of(request: Request, allow: Allow, user_name: UserName) -> Visitor:
    """Ask for each action whether this request may do it."""
    allowed = [action for action in ACTIONS if await _answer(allow, request, action)]
    return Visitor(str(await _answer(user_name, request)), frozenset(allowed))


async def _answer(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the application: in a thread unless it is asynchronous, since it may ask a database."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    answer = await run_in_threadpool(function, *arguments)
    return await answer if inspect.isawaitable(answer) else answer
