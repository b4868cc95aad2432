"""Routes: which queue the jobs of a function wait in that names none."""

from __future__ import annotations

from typing import Any

import pytest
from support.job_app import JobAppFlavour

from leaseq.errors import BadNameError, BadTypeError
from leaseq.jobs import App

ROUTES = {"mail.*": "mail", "*.report": "slow", "mail.report": "never"}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["threads", "asyncio"])
def test_the_first_pattern_that_fits_names_the_queue(url: str, *, asynchronous: bool) -> None:
    with JobAppFlavour(App(url, routes=ROUTES, queue="other"), asynchronous=asynchronous) as flavour:
        app = flavour.app

        @app.job(name="mail.send")
        def send(number: int) -> int:
            return number

        @app.job(name="shop.report", retries=0)
        def report(number: int) -> int:
            return number

        @app.job(name="mail.own", queue="own")
        def own(number: int) -> int:
            return number

        @app.job(name="Mail.other")
        def other(number: int) -> int:
            return number

        found = {
            name: flavour(enqueue, "enqueue", 1).queue
            for name, enqueue in {
                "send": send,
                "report": report,
                "own": own,
                "other": other,
                "with options": send.with_options(priority=1),
                "another queue": send.with_options(queue="urgent"),
                "known, by name": app.function("mail.send"),
                "unknown, by name": app.function("mail.report"),
                "unknown without a route": app.function("nothing"),
            }.items()
        }
        assert found == {
            "send": "mail",
            "report": "slow",
            "own": "own",
            "other": "other",
            "with options": "mail",
            "another queue": "urgent",
            "known, by name": "mail",
            "unknown, by name": "mail",
            "unknown without a route": "other",
        }
        assert set(app.queues) == {"other", "mail", "slow", "own", "never"}
        handle = flavour(app, "enqueue", "mail.send", 7)
        assert flavour.burst(queues=["mail"]) == 4
        assert flavour(app.handle(handle.id), "result") == 7  # found in a queue that only a route names


def test_the_jobs_of_a_schedule_have_the_queue_of_their_function() -> None:
    app = App(routes=ROUTES)

    @app.cron("@daily", name="shop.report")
    def report() -> None: ...

    assert report.options.queue == "slow"
    (schedule,) = app.program.schedules
    assert schedule.call.options.queue == "slow"


@pytest.mark.parametrize("routes", [["mail"], {1: "mail"}, "mail", {"mail.*": 5}])
def test_bad_routes(routes: Any) -> None:
    with pytest.raises((BadTypeError, BadNameError)):
        App(routes=routes)


def test_a_queue_of_a_route_has_a_name() -> None:
    with pytest.raises(BadNameError):
        App(routes={"mail.*": "my mail"})
