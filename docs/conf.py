"""The settings of `make docs`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sphinx.ext.napoleon.docstring import GoogleDocstring

import leaseq

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "leaseq"
author = "The leaseq authors"
project_copyright = author
version = release = leaseq.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "from-fennel.md"]
html_theme = "furo"
html_title = f"leaseq {release}"

default_role = "literal"  # docstrings write code between single backticks
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True}
myst_heading_anchors = 3


def read_docstring(_app: Sphinx, what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """Read a docstring as what it is: text, with sections such as Args, no markup."""
    # an underscore at the end of a word would become a link
    lines[:] = [re.sub(r"(?<=\w)_(?!\w)", r"\\_", line) if "`" not in line else line for line in lines]
    if what != "property":  # there, what comes before a colon would be taken for a type
        lines[:] = GoogleDocstring(lines).lines()


def setup(app: Sphinx) -> None:
    """Connect what is above."""
    app.connect("autodoc-process-docstring", read_docstring)
