"""The settings of `make docs`. The site is the Markdown pages where they are, so that the forge and the site follow the same links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import leaseq

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "leaseq"
author = "The leaseq authors"
project_copyright = author
version = release = leaseq.__version__

extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = [
    "CHANGELOG.md",
    "docs/*.md",
    "docs/adr/*.md",
    "CHANGELOG.md",
    "spec/*.md",
    "conformance-tests/*.md",
]
exclude_patterns = [
    ".*",
    "build",
    "dist",
    "lua",
    "python",
    "typescript",
    "benchmarks",
    "docs/_build",
    "docs/from-fennel.md",
]
html_theme = "furo"
html_title = f"leaseq {release}"
html_static_path = ["site"]
html_css_files = ["site.css"]

myst_heading_anchors = 4

copybutton_prompt_text = "$ "
copybutton_exclude = ".linenos, .gp, .go"  # what a program prints

NAVIGATION = {
    "docs/index": {
        "Get started": "quickstart jobs examples typescript typescript-jobs go rust concepts",
        "Guides": "worker delays priorities attempts expiry outcomes handoff limits cancelling headers",
        "How to": "middleware outbox fastapi django fastify forks deployment kubernetes",
        "Operating": "operations durability backups upgrading worker-processes dashboard cleaner doctor transfer embedded",
        "Reference": "api typescript-api cli settings metrics /spec/README /CHANGELOG",
        "Explanation": "guarantees promises comparison benchmarks architecture adr/README",
        "Migration": "from-redis-work-queue from-arq from-rq from-celery from-bullmq",
        "Porting": "porting /conformance-tests/README",
    },
    "docs/adr/README": {"Records": "0*"},
    "spec/README": {"Pages": "[0-9]* jobs"},
    "conformance-tests/README": {"Pages": "[A-Q]* S*"},
}
"""The pages below a page, by caption; a name with `*` stands for several."""


def add_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add the lists of pages, which readers of the files need not see."""
    for caption, names in NAVIGATION.get(page, {}).items():
        source[0] += (
            f"\n\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n{names.replace(' ', chr(10))}\n```\n"
        )


def add_entry(app: Sphinx, _error: Exception | None) -> None:
    """Lead from the folder of the site to its first page."""
    (app.outdir / "index.html").write_text(
        '<meta http-equiv="refresh" content="0; url=docs/index.html">\n'
    )


def setup(app: Sphinx) -> None:
    """Connect what is above."""
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_entry)
