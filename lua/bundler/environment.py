"""The templates, and the filters that they have."""

import json
from collections.abc import Callable
from pathlib import Path

import jinja2

TEMPLATES = Path(__file__).parent / "templates"


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
    found.filters |= {"json": json.dumps, **filters}
    return found
