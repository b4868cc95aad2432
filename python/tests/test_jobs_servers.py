"""Jobs on a cluster, and under names and headers that are hard to bear."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import redis.asyncio
from job_shift import Twin

from leaseq.jobs import App

if TYPE_CHECKING:
    import servers

pytestmark = [pytest.mark.on("last"), pytest.mark.timeout(300)]


def test_jobs_on_a_cluster(cluster: servers.ClusterSet) -> None:
    async def work() -> None:
        client = redis.asyncio.RedisCluster.from_url(cluster.url)
        async with App(client, group="shop") as app:

            @app.job(name="f", queue="mail")
            async def f(number: int) -> int:
                return number

            handles = await app.aenqueue_many([f.call(number) for number in range(5)])
            handles.append(await f.using(id="a}b{c", queue="other").aenqueue(5))
            late = await f.using(id="{x}", delay=3600).aenqueue(6)
            assert await app.arun_worker(burst=True, handle_signals=False, queues=["mail", "other"]) == 6
            assert [await handle.aresult(0) for handle in handles] == list(range(6))
            assert await late.acancel()
            assert await app.astatuses([*handles[:1], late]) == ["succeeded", "cancelled"]
            assert (await late.ainfo()).status == "cancelled"
        await client.aclose()

    with Twin(App("redis://unused"), asynchronous=True) as twin:
        twin.run(work())


@pytest.mark.parametrize("name", ["ß", "a b", "{x}", "a:b", "\n", "x" * 200])
def test_ids_and_names_of_all_kinds(url: str, name: str) -> None:
    app = App(url)

    @app.job(name=name)
    def f() -> str:
        return name

    with Twin(app, asynchronous=False) as twin:
        handle = f.using(id=name, headers={"h": name}, description=name).enqueue()
        gone = f.using(id=f"{name}2", delay=3600).enqueue()
        assert gone.cancel()
        twin.burst()
        assert handle.result(0) == name
        assert (handle.info().function, handle.info().description) == (name, name)
        assert gone.status() == "cancelled"
