"""The job layer, for commands that need it: it is there where its extra is installed."""

from typing import TYPE_CHECKING

from leaseq.cli import stdio

if TYPE_CHECKING:
    from leaseq.jobs import App


def app_class() -> "type[App]":
    """leaseq.jobs.App; without the extra `jobs`, say how to install it and end with 2."""
    with stdio.needing("jobs", "leaseq: jobs need", "cronsim", "msgspec", "setproctitle"):
        from leaseq.jobs import App
    return App
