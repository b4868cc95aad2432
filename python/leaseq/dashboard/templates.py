"""The templates of the pages, and what they can call."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

import leaseq
from leaseq import formatting
from leaseq.dashboard import visible_text
from leaseq.dashboard.access import Visitor
from leaseq.dashboard.sparkline import points

_ENVIRONMENT: Final = jinja2.Environment(
    autoescape=True,
    loader=jinja2.PackageLoader("leaseq.dashboard", "templates"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def _iso(seconds: float) -> str:
    """Return a moment as the attribute of an element `time`; "" if no calendar has it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return ""


def _moment(seconds: float) -> str:
    return formatting.moment(seconds) if _iso(seconds) else f"{seconds:g}"


_ENVIRONMENT.filters.update(
    line=visible_text.line,
    first_line=visible_text.first_line,
    block=visible_text.block,
    value=visible_text.value,
    duration=formatting.duration,
    when=formatting.when,
    size=formatting.size,
    moment=_moment,
    iso=_iso,
    number=lambda count: f"{count:,}",
    rate=lambda per_minute: (
        f"{per_minute:,.0f}" if per_minute >= 10 or per_minute == 0 else f"{per_minute:.1f}"
    ),
    points=points,
)
_ENVIRONMENT.globals["version"] = leaseq.__version__


_WITH_FRAGMENT: Final = {name[1:-5] for name in _ENVIRONMENT.list_templates() if name.startswith("_")}
"""Pages with a part that is read again and again."""


def base_of(request: Request) -> str:
    """Return the path below which the dashboard is mounted, without a slash at its end."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def render(name: str, request: Request, visitor: Visitor, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page; for a request of htmx the part of it that changes, which is in the template `_NAME`."""
    base = base_of(request)

    def url(path: str, /, **query: object) -> str:
        """Return the address of a page; parameters that are None are left out."""
        given = {key: str(value) for key, value in query.items() if value is not None}
        return f"{base}{path}{'?' if given else ''}{urlencode(given, errors='surrogatepass')}"

    is_fragment = request.headers.get("hx-request") == "true" and name in _WITH_FRAGMENT
    template = _ENVIRONMENT.get_template(f"{'_' if is_fragment else ''}{name}.html")
    page = template.render(
        url=url,
        base=base,
        visitor=visitor,
        path=request.url.path.removeprefix(base),
        page_name=name,
        **values,
    )
    return HTMLResponse(page.encode("utf-8", "replace"), status)


def paging(number: int, pages: int) -> Sequence[Mapping[str, Any]]:
    """Return the links to other pages: the first, the ones around this, the last."""
    numbers = sorted({1, pages, *range(max(1, number - 2), min(pages, number + 2) + 1)})
    return [{"number": each, "is_current": each == number} for each in numbers]
