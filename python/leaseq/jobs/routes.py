"""Routes: which queue the jobs of a function wait in, by its name."""

import fnmatch
from collections.abc import Mapping
from typing import Any

from leaseq.errors import BadTypeError
from leaseq.keys import QueueKeys


class Routes:
    """Queues by patterns of function names, as in `{"mail.*": "mail"}`; the first pattern that fits decides.

    Raises BadTypeError, BadNameError.

    Attributes:
        queues: the queues of all routes.
    """

    def __init__(self, given: Mapping[str, str] | None) -> None:
        routes: Any = {} if given is None else given
        if not isinstance(routes, Mapping) or not all(isinstance(pattern, str) for pattern in routes):
            raise BadTypeError('routes are a dict of patterns and queues, as in {"mail.*": "mail"}')
        for queue in routes.values():
            QueueKeys(queue)
        self._routes = dict(routes)
        self.queues = list(self._routes.values())

    def queue_of(self, function: str) -> str | None:
        """Return the queue of the jobs of a function; None if no pattern fits."""
        fitting = (queue for pattern, queue in self._routes.items() if fnmatch.fnmatchcase(function, pattern))
        return next(fitting, None)
