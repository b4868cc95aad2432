"""A server that does not answer is reported once, and so is its return."""

from __future__ import annotations

from leaseq.worker import server_health
from leaseq.worker.server_health import ServerHealth


def test_an_outage_is_reported_once() -> None:
    watch = ServerHealth()
    assert watch.mark_up(0.0) is None
    assert [watch.mark_down(float(second)) for second in range(3)] == [True, False, False]
    assert watch.is_down
    assert watch.mark_up(10.0) == 10.0
    assert (watch.is_down, watch.mark_up(11.0)) == (False, None)
    assert all(server_health.pause(failures) <= server_health.pause.last for failures in (1, 5, 50, 5000))
