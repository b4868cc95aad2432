"""Jobs on a cluster, for a user with few rights, and under names and headers that are hard to bear."""

from __future__ import annotations

import contextlib
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
import redis.asyncio
from support.job_app import TIMEOUT_SECS, JobAppFlavour, for_asyncio, until
from support.redis_probe import count_blocked
from support.spec_rules import Tree

from leaseq.jobs import App, Context, JobCancelled, aio
from leaseq_conformance.acl_suite import roles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support import servers


def test_jobs_on_a_cluster(cluster: servers.RedisCluster) -> None:
    async def work() -> None:
        client = redis.asyncio.RedisCluster.from_url(cluster.url)
        async with aio.App(client, group="shop") as app:

            @app.job(name="f", queue="mail")
            async def f(number: int) -> int:
                return number

            handles = await app.enqueue_many([f.call(number) for number in range(5)])
            handles.append(await f.with_options(id="a}b{c", queue="other").enqueue(5))
            late = await f.with_options(id="{x}", delay=3600).enqueue(6)
            assert await app.run_worker(burst=True, handle_signals=False, queues=["mail", "other"]) == 6
            assert [await handle.result(0) for handle in handles] == list(range(6))
            assert await late.cancel()
            assert await app.statuses([*handles[:1], late]) == ["succeeded", "cancelled"]
            assert (await late.info()).status == "cancelled"
        await client.aclose()

    with JobAppFlavour(App("redis://unused"), asynchronous=True) as flavour:
        flavour.run(work())


@pytest.mark.parametrize("name", ["ß", "a b", "{x}", "a:b", "\n", "x" * 200])
def test_ids_and_names_of_all_kinds(url: str, name: str) -> None:
    app = App(url)

    @app.job(name=name)
    def f() -> str:
        return name

    with JobAppFlavour(app, asynchronous=False) as flavour:
        handle = f.with_options(id=name, headers={"h": name}, description=name).enqueue()
        gone = f.with_options(id=f"{name}2", delay=3600).enqueue()
        assert gone.cancel()
        flavour.burst()
        assert handle.result(0) == name
        assert (handle.info().function, handle.info().description) == (name, name)
        assert gone.status() == "cancelled"


@contextlib.contextmanager
def user(client: redis.Redis, url: str, *, without: str = "") -> Iterator[str]:
    """A user with the rights that the specification names for jobs, and a URL for it."""
    (bullet,) = re.findall(
        r"^- Jobs need more: (.*?)^- ", Tree().page("11-security.md"), re.DOTALL | re.MULTILINE
    )
    jobs = [right for code in re.findall(r"`(\+[^`]+)`", bullet) for right in code.split()]
    rights = {"+ping", "+hello", "+client", *roles()["worker"][1], *roles()["reader"][1], *jobs} - {without}
    rules = ["reset", "on", ">word", "~leaseq:*", "-@all", *rights]
    client.acl_log_reset()
    client.execute_command("ACL", "SETUSER", "jobs", *rules)  # type: ignore[no-untyped-call]
    try:
        yield url.replace("://", "://jobs:word@")
    finally:
        client.acl_deluser("jobs")


def denied(client: redis.Redis) -> set[str]:
    """Return what that user was refused."""
    entries: list[dict[str, Any]] = client.acl_log()
    return {each["object"] for each in entries if each["username"] == "jobs"}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_rights_of_the_specification_are_enough(
    url: str, redis_client: redis.Redis, *, asynchronous: bool
) -> None:
    with user(redis_client, url) as own, JobAppFlavour(App(own), asynchronous=asynchronous) as flavour:
        begun, go = threading.Event(), threading.Event()

        @flavour.app.every(3600, name="hourly")
        @flavour.app.job(name="f")
        def f(ctx: Context, number: int = 0) -> int:
            ctx.progress(1)
            begun.set()
            go.wait(TIMEOUT_SECS)
            return number

        handle = flavour(flavour.app.chain(f.with_options(id="a").call(1)).then(f.partial()), "enqueue")
        with flavour.working() as worker:
            assert begun.wait(TIMEOUT_SECS)
            worker.flush()
            assert flavour(handle.stages[0], "info").progress == (1, None)
            until(lambda: flavour(flavour.app.schedules, "inspect"))
            flavour(flavour.app.schedules, "pause", "hourly")
            assert flavour(flavour.app.schedules, "inspect")[0].paused
            flavour(flavour.app.schedules, "resume", "hourly")
            late = flavour(f.with_options(delay=3600), "enqueue")
            waiting = flavour.start(for_asyncio(late).result())
            until(lambda: count_blocked(redis_client) >= 1)
            assert flavour(late, "cancel")
            with pytest.raises(JobCancelled):
                waiting.result(TIMEOUT_SECS)
            go.set()
            assert flavour(handle, "result", TIMEOUT_SECS) == 1
        assert [info.id for info in flavour(flavour.app, "jobs", "succeeded")] == ["a", handle.last.id]
    assert denied(redis_client) == set()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_job_that_was_added_was_added_whatever_cannot_be_forgotten(
    url: str, redis_client: redis.Redis, *, asynchronous: bool
) -> None:
    with (
        user(redis_client, url, without="+del") as own,
        JobAppFlavour(App(own), asynchronous=asynchronous) as flavour,
    ):
        handle = flavour(flavour.app.function("f").with_options(id="a"), "enqueue")
        assert handle.added
        assert flavour(handle, "status") == "ready"
    assert denied(redis_client) == {"del"}
