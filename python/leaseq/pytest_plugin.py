"""Fixtures for pytest, which finds them if leaseq is installed. Only what a test uses is imported.

`leaseq_url` needs the extra `embedded`, `leaseq_jobs` that and `jobs`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from leaseq.jobs import App, aio

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


@pytest.fixture
def leaseq_jobs(leaseq_url: str) -> Iterator[Callable[[AnyApp], AnyApp]]:
    """Called with an App: until the test ends, its server is `leaseq_url`, and its jobs run as they are enqueued."""
    from leaseq.jobs.testing import at_once

    with contextlib.ExitStack() as stack:

        def here(app: AnyApp) -> AnyApp:
            stack.enter_context(at_once(app, leaseq_url))
            return app

        yield here
