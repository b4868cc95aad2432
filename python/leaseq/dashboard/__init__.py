"""The dashboard: queues, items, jobs, workers and schedules in a browser.

    app.mount("/queues", leaseq.dashboard.asgi("redis://localhost"))

`leaseq dashboard` serves it alone. Needs the extra `dashboard`.
"""

try:
    import jinja2  # noqa: F401 (the extra brings both)
    import starlette  # noqa: F401
except ModuleNotFoundError as error:
    from leaseq import extras

    raise extras.missing("dashboard", "leaseq.dashboard", error) from error

from leaseq.dashboard.access import Action, Allow, UserName
from leaseq.dashboard.application import asgi

__all__ = ["Action", "Allow", "UserName", "asgi"]
