"""The audit log: who changed what and when."""

from __future__ import annotations

import getpass
import json
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import leaseq
from leaseq.jobs import App

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import redis
    from support.cli_runner import Calls


@pytest.fixture
def queue(url: str) -> Iterator[leaseq.WorkQueue]:
    with leaseq.WorkQueue("q", url, group="g") as opened:
        yield opened


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "audit.log"
    monkeypatch.setenv("LEASEQ_AUDIT_LOG", str(path))
    monkeypatch.delenv("SUDO_USER", raising=False)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def ended(path: Path) -> list[tuple[str, dict[str, Any], int | None, str | None]]:
    """Return command, options, what it changed and its error, of each command, whose two lines belong together."""
    lines = read(path)
    found = []
    for before, after in zip(lines[::2], lines[1::2], strict=True):
        assert (before.pop("event"), after["event"]) == ("started", "ended")
        assert before.pop("time") <= after["time"]
        assert before.items() >= {(name, after[name]) for name in ("run", "user", "host", "command")}
        found.append((after["command"], after["options"], after["changed"], after["error"]))
        assert before["options"] == after["options"]
    return found


def test_each_command_that_changes_something_is_logged(
    call: Calls, queue: leaseq.WorkQueue, log: Path
) -> None:
    of = ("q", "--group", "g")
    queue.add_items(leaseq.Item(b"", id=item_id) for item_id in "abcdefgh")
    queue.dead_letter_items(queue.lease_items(4, 60))
    queue.lease_items(2, 60)
    call("promote", *of, "g")
    call("remove", *of, "g", "no such")
    call("expire", *of, "e")
    call("dead", "revive", *of, "a")
    call("dead", "purge", *of, "--older-than", "1ms", "--yes", "--json")
    call("dead", "purge", *of, "--all", "--yes")
    call("pause", *of)
    call("resume", *of)
    call("configure", *of, "--max-items", "7")
    call("drain", *of, "--state", "ready", "--yes")
    call("delete", *of)
    for looked in ("stats", "list", "peek", "clean"):
        call(looked, *of)
    assert ended(log) == [
        ("leaseq promote", {"ids": ["g"]}, 0, None),
        ("leaseq remove", {"ids": ["g", "no such"]}, 1, None),
        ("leaseq expire", {"ids": ["e"], "error": "the lease was ended by leaseq expire"}, 1, None),
        ("leaseq dead revive", {"ids": ["a"]}, 1, None),
        ("leaseq dead purge", {"older_than": 0.001}, 3, None),
        ("leaseq dead purge", {}, 0, "nothing was purged"),
        ("leaseq pause", {}, None, None),
        ("leaseq resume", {}, None, None),
        ("leaseq configure", {"max_items": 7}, None, None),
        ("leaseq drain", {"states": ["ready"]}, 3, None),
        (
            "leaseq delete",
            {},
            None,
            "LEASEQ_IN_USE the queue holds items: complete, remove or purge them first",
        ),
    ]
    first = read(log)[0]
    assert (first["user"], first["host"], first["queue"], first["group"]) == (
        getpass.getuser(),
        socket.gethostname(),
        "q",
        "g",
    )
    assert abs((datetime.now(UTC) - datetime.fromisoformat(first["time"])).total_seconds()) < 600
    assert log.stat().st_mode & 0o777 in {0o640, 0o600}


def test_commands_on_jobs_and_schedules_are_logged(call: Calls, url: str, log: Path) -> None:
    with App(url, group="jobs") as app:
        app.function("f").with_options(id="a", delay=3600).enqueue()
    call("jobs", "promote", "a")
    call("jobs", "cancel", "a")
    call("jobs", "revive", "a")
    call("jobs", "purge", "a", "--yes")
    call("jobs", "cron", "pause", "nightly")
    assert [(command, changed) for command, _, changed, _ in ended(log)] == [
        ("leaseq jobs promote", 1),
        ("leaseq jobs cancel", 1),
        ("leaseq jobs revive", 0),
        ("leaseq jobs purge", 0),
        ("leaseq jobs cron pause", None),
    ]
    assert {(line["queue"], line["group"]) for line in read(log)} == {("default", "jobs")}


def test_who_called_sudo_is_named(
    call: Calls, queue: leaseq.WorkQueue, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_USER", "ada")
    queue.add_item(leaseq.Item(b""))
    call.yes("pause", "q", "--group", "g")
    assert {line["user"] for line in read(log)} == {f"ada as {getpass.getuser()}"}


def test_nothing_is_changed_that_cannot_be_logged(
    call: Calls, queue: leaseq.WorkQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.add_item(leaseq.Item(b"", id="a"))
    monkeypatch.setenv("LEASEQ_AUDIT_LOG", str(tmp_path / "no folder" / "log"))
    done = call("remove", "q", "--group", "g", "a")
    assert (done.code, queue.inspect("a").state) == (74, "ready")
    assert "no folder/log: No such file" in done.err


def test_a_command_that_is_interrupted_is_logged(
    call: Calls, queue: leaseq.WorkQueue, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    queue.add_item(leaseq.Item(b""))
    monkeypatch.setattr(leaseq.WorkQueue, "pause", interrupt)
    assert call("pause", "q", "--group", "g").code == 130
    assert [error for *_, error in ended(log)] == ["KeyboardInterrupt"]


def test_workers_are_steered(call: Calls, url: str, log: Path, redis_client: redis.Redis) -> None:
    redis_client.set("leaseq:worker:h:1:2", "{}")
    done = call("steer", "quiet", "h:1:2", "h:1:3", "--url", url)
    assert (done.code, done.lines) == (1, ["quiet h:1:2", "not alive: h:1:3"])
    assert redis_client.get("leaseq:worker:h:1:2/wish") == b"quiet"
    assert call.yes("steer", "resume", "h:1:2", "--json", "--url", url).document == {
        "id": "h:1:2",
        "resume": True,
    }
    assert not redis_client.exists("leaseq:worker:h:1:2/wish")
    assert call.yes("steer", "stop", "h:1:2", "--url", url).lines == ["stop h:1:2"]
    assert [
        (line["command"], line["options"], line["changed"]) for line in read(log) if line["event"] == "ended"
    ] == [
        ("leaseq steer", {"wish": "quiet", "workers": ["h:1:2", "h:1:3"]}, 1),
        ("leaseq steer", {"wish": "resume", "workers": ["h:1:2"]}, 1),
        ("leaseq steer", {"wish": "stop", "workers": ["h:1:2"]}, 1),
    ]
    assert call("steer", "pause", "h:1:2", "--url", url).code == 2
    call.refused(2, "no id of a worker", "steer", "stop", "h:1:2", "no id!", "--url", url)
    assert redis_client.get("leaseq:worker:h:1:2/wish") == b"stop", "from the call before"
    redis_client.delete("leaseq:worker:h:1:2/wish")
    call.refused(2, "no id of a worker", "steer", "quiet", "h:1:2", "no id!", "--url", url)
    assert not redis_client.exists("leaseq:worker:h:1:2/wish"), "a wrong id among several changes nothing"
