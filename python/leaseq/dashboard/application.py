"""The application: routes, visitors, errors."""

import contextlib
from collections.abc import AsyncIterator, Callable, Collection
from functools import partial
from importlib import resources
from typing import Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from leaseq import errors
from leaseq.dashboard.access import Allow, UserName, Visitor, name_in_scope, read_only, visitor_of
from leaseq.dashboard.pages.change import change
from leaseq.dashboard.pages.cleaner import cleaner
from leaseq.dashboard.pages.dead import dead
from leaseq.dashboard.pages.doctor import doctor
from leaseq.dashboard.pages.item import item
from leaseq.dashboard.pages.overview import overview
from leaseq.dashboard.pages.queue import queue
from leaseq.dashboard.pages.schedules import schedules
from leaseq.dashboard.pages.search import search
from leaseq.dashboard.pages.workers import workers
from leaseq.dashboard.request_guard import RequestGuard
from leaseq.dashboard.site import Site, Visit
from leaseq.dashboard.source import Server, Source

Page = Callable[[Site, Visit], Response]
Login = Callable[[ASGIApp], ASGIApp]

MAX_FORM_BYTES: Final = 262_144
"""Bytes of a form: of data that are edited each byte may be three. A longer form is refused."""

_PAGES: Final[dict[str, Page]] = {
    "/": overview,
    "/queue": queue,
    "/item": item,
    "/dead": dead,
    "/workers": workers,
    "/schedules": schedules,
    "/search": search,
    "/cleaner": cleaner,
    "/doctor": doctor,
}


class Dashboard:
    """The dashboard as an ASGI application, to be mounted under any path.

    `hosts` and `login` are for a dashboard that runs alone: the names that a browser may use, and what asks for the user.
    With `purges` it carries out planned purges that are due. A dashboard without changes leaves them alone.
    """

    def __init__(
        self,
        server: Server | None,
        allow: Allow = read_only,
        user: UserName = name_in_scope,
        hosts: Collection[str] | None = None,
        login: Login | None = None,
        *,
        purges: bool = False,
    ) -> None:
        self.site = Site(Source(server), purges=purges)
        self._allow = allow
        self._user = user
        routes: list[Mount | Route] = [
            Route(path, partial(self._answer, page)) for path, page in _PAGES.items()
        ]
        routes.append(Route("/change", partial(self._answer, change), methods=["GET", "POST"]))
        with resources.as_file(resources.files("leaseq.dashboard") / "static") as folder:
            routes.append(Mount("/static", StaticFiles(directory=folder)))
        app: ASGIApp = Starlette(
            routes=routes, lifespan=self._life, exception_handlers={HTTPException: self._refuse}
        )
        self._app = RequestGuard(app if login is None else login(app), hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)

    def close(self) -> None:
        """End the background reader and close the connections. A server that runs the dashboard alone does it."""
        self.site.close()

    @contextlib.asynccontextmanager
    async def _life(self, _app: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(self.site.start)
        yield
        await run_in_threadpool(self.close)

    async def _answer(self, page: Page, request: Request) -> Response:
        """Answer a visit: in a thread, since pages ask the server."""
        visitor = await visitor_of(request, self._allow, self._user)
        if not visitor.may("read"):
            return await self._refuse(request, HTTPException(403))
        form = await _form(request) if request.method == "POST" else {}
        visit = Visit(request, visitor, form)
        try:
            return await run_in_threadpool(page, self.site, visit)
        except errors.LeaseqError as error:
            status, title = _meaning(error)
            return visit.render("error", status, title=title, text=str(error))

    async def _refuse(self, request: Request, error: Exception) -> Response:
        """Return the page of an error of HTTP."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        titles = {403: "Not allowed", 404: "Not found", 405: "Not allowed", 413: "Too long"}
        texts = {403: "You may not see this dashboard.", 404: "There is no such page."}
        visit = Visit(request, Visitor("", frozenset()))
        return visit.render(
            "error", status, title=titles.get(status, "Error"), text=texts.get(status, "Nothing was done.")
        )


def asgi(
    server: Server | None = None, *, allow: Allow | None = None, user: UserName | None = None
) -> Dashboard:
    """Return the dashboard of a server as an ASGI application: `app.mount("/queues", leaseq.dashboard.asgi(url))`.

    `server` is a URL as for `WorkQueue`, or a client of redis-py for threads; without one, $REDIS_URL.

    `allow(request, action)` returns whether a request may do an action, a function or an `async def`. "read" is to see
    the pages, "data" to see the data of items, arguments, results and headers. The others change something: "revive",
    "purge" and its undo, "edit" (requeue with other data), "promote", "remove", "release", "pause", "resume", "configure",
    "trigger", "pause_schedule", "resume_schedule", "quiet_worker", "resume_worker", "stop_worker". Without `allow`, every
    request may "read" and nothing else. So mount it behind the login of your application, or give `allow`.

    `user(request)` returns the name of the user for the audit log; by default the user of Starlette's
    `AuthenticationMiddleware`.

    With `allow`, it also carries out planned purges that are due. No connection is opened before the first request, if it
    is mounted. `close()` of the application ends its background thread; a server
    that runs it alone calls that at its end. Raises NoServerError, BadTypeError, BadArgumentError.
    """
    return Dashboard(server, allow or read_only, user or name_in_scope, purges=allow is not None)


async def _form(request: Request) -> dict[str, str]:
    """Read a form. Raises HTTPException."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise HTTPException(413)
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))


def _meaning(error: errors.LeaseqError) -> tuple[int, str]:
    """Return the status and the title for an error of the library."""
    if not error.definite:
        return 503, "It may or may not have been done"
    if isinstance(error, errors.BadArgumentError | errors.BadIdError | errors.BadNameError):
        return 400, "This cannot be shown or done"
    return 503, "The server does not answer"
