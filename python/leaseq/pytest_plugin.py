"""Fixtures for pytest, which finds them if leaseq is installed. Only what a test uses is imported.

`leaseq_url` needs the extra `embedded`, `leaseq_jobs` that and `jobs`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeVar

    from leaseq.jobs import App, aio
    from leaseq.jobs.testing import Clock

    AnyApp = TypeVar("AnyApp", App, aio.App)


@pytest.fixture(scope="session")
def _leaseq_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that ends with the session."""
    from leaseq.embedded import embedded

    with embedded(tmp_path_factory.mktemp("leaseq")) as server:
        yield server.url


@pytest.fixture
def leaseq_url(_leaseq_server: str) -> str:
    """The URL of a real server of the tests' own, emptied for each test."""
    import redis

    with redis.Redis.from_url(_leaseq_server) as client:
        client.flushall()
    return _leaseq_server


class LeaseqJobs:
    """The fixture `leaseq_jobs`: call it with an App, and move the clock of all Apps it was called with.

    Attributes:
        clock: `leaseq_jobs.clock.advance("1h")` runs what is due by then.
    """

    def __init__(self, server: str, stack: contextlib.ExitStack, clock: Clock) -> None:
        self.clock = clock
        self._server = server
        self._stack = stack

    def __call__(self, app: AnyApp) -> AnyApp:
        """Return the App. Until the test ends, its server is `leaseq_url`, and its jobs run as they are enqueued."""
        from leaseq.jobs.testing import at_once

        self._stack.enter_context(at_once(app, self._server, clock=self.clock))
        return app


@pytest.fixture
def leaseq_jobs(leaseq_url: str) -> Iterator[LeaseqJobs]:
    """Called with an App: until the test ends, its server is `leaseq_url`, and its jobs run as they are enqueued."""
    from leaseq.jobs.testing import Clock

    with contextlib.ExitStack() as stack:
        yield LeaseqJobs(leaseq_url, stack, Clock())
