"""The job layer, for commands that need it: it is there where its extra is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from leaseq.cli.ends import Code, Refusal

if TYPE_CHECKING:
    from leaseq.jobs import App

_EXTRA: Final = {"cronsim", "msgspec", "setproctitle"}


def app_class() -> type[App]:
    """leaseq.jobs.App. Raises Refusal where the extra is not installed."""
    try:
        from leaseq.jobs import App
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        message = f"jobs need {error.name}; install it with: pip install 'leaseq[jobs]'"
        raise Refusal(message, Code.BAD_INPUT) from error
    return App
