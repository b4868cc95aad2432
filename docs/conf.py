"""How `make docs` builds the documentation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import leaseq

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "leaseq"
author = "The leaseq authors"
project_copyright = author
version = release = leaseq.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"leaseq {release}"

default_role = "literal"  # docstrings write code between single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True}
myst_heading_anchors = 3


def plain_text(_app: Sphinx, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """Keep an underscore at the end of a word from becoming a link: docstrings are text, not markup."""
    lines[:] = [re.sub(r"(?<=\w)_(?!\w)", r"\\_", line) if "`" not in line else line for line in lines]


def setup(app: Sphinx) -> None:
    """Connect what is above."""
    app.connect("autodoc-process-docstring", plain_text)
