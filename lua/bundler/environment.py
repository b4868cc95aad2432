"""The templates, and the filters that they have."""

import json
from collections.abc import Callable
from pathlib import Path

import jinja2

TEMPLATES = Path(__file__).parent / "templates"
YEAR_MS = 365 * 86_400_000


def environment(**filters: Callable[..., object]) -> jinja2.Environment:
    """Return the templates, with `json` and further filters."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=False,  # noqa: S701 code, no HTML
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {"json": json.dumps, "duration": duration, **filters}
    return found


def duration(milliseconds: int) -> str:
    """Return a number of milliseconds for people, in the largest unit in which it is whole."""
    for unit, length in {"years": YEAR_MS, "days": YEAR_MS // 365}.items():
        if milliseconds and milliseconds % length == 0:
            return f"{milliseconds // length} {unit}"
    return f"{milliseconds} ms" if milliseconds else "0"
