"""A queue of jobs as the suite works on it, past every client: by script calls and by the keys of spec/jobs.md."""

from __future__ import annotations

import base64
import json
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leaseq_conformance.manifest import SCRIPTS, manifest
from leaseq_conformance.model.codec import Extra
from leaseq_conformance.scenarios import key_inspector
from leaseq_conformance.worker_program import GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping

    import redis

HOUR_MS: Final = 3_600_000
REFUSED: Final = re.compile(rb"(?<=\nrefused: )[^\n]+")
PLAIN_CHARS: Final = 19
"""Characters of a date and time up to its seconds."""


class Ending(NamedTuple):
    """The answer of `outcome` about one job."""

    kind: str
    attempt: int
    content: bytes


class JobQueue:
    """One queue of the group `jobs`."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        self.client = client
        self.prefix = f"leaseq:{{{GROUP}}}:{name}:"
        self._tokens: dict[str, str] = {}

    def add(self, job_id: str, data: bytes, options: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Add an item. Raises ValueError if one of its id is there."""
        given = {**options, **{f"header:{name}": value for name, value in headers.items()}}
        if not self._run("add", 1, job_id, data, *_counted(given)):
            raise ValueError(f"an item {job_id} is there already")

    def replace(self, job_id: str, data: bytes, options: Mapping[str, Any]) -> None:
        """Add an item in place of one of its id, also while a worker that starts adds that too."""
        while True:
            self.remove(job_id)
            if self._run("add", 1, job_id, data, *_counted(options)):
                return

    def lease(self) -> tuple[str, str]:
        """Lease the next item and return its id and token. Raises ValueError if there is none."""
        _, _, count, *rest = self._run("lease", 1, HOUR_MS)
        if not count:
            raise ValueError("no item can be leased")
        job_id, token = rest[0].decode(), str(rest[2])
        self._tokens[job_id] = token
        return job_id, token

    def complete(self, job_id: str, content: bytes) -> None:
        """Complete an item that was leased here, with a result."""
        self._run(
            "complete_with",
            *(1, 0, job_id, self._tokens[job_id], *_counted({"keep": 0, "result": content}), 0),
            more=(f"result:{job_id}",),
        )

    def release(self, job_id: str, options: Mapping[str, Any]) -> None:
        """Release an item that was leased here."""
        more = (f"result:{job_id}",) if "keep" in options else ()
        self._run("release", 1, job_id, self._tokens[job_id], *_counted(options), more=more)

    def revive(self, job_id: str) -> None:
        """Revive an item if it is dead."""
        self._run("revive", 1, job_id)

    def remove(self, job_id: str) -> None:
        """Remove an item, if it is there."""
        self._run("remove", 1, job_id)

    def cancel(self, job_id: str) -> None:
        """Cancel a job as LQ-JOB-11 says."""
        note = {"v": 1, "cancelled": self.now_ms()}
        with self.client.pipeline(transaction=True) as pipe:
            script = SCRIPTS["remove"]
            keys = [self.prefix + key for key in script.keys]
            pipe.eval(script.source, len(keys), *keys, 1, job_id)
            pipe.set(f"{self.prefix}cancelled:{job_id}", json.dumps(note), px=HOUR_MS)
            pipe.execute()

    def outcome(self, job_id: str) -> Ending:
        """Return what has become of a job."""
        kind, _, _, attempt, _, content = self._run("outcome", 1, job_id, more=(f"result:{job_id}",))
        return Ending(kind.decode(), attempt, content)

    def inspect(self, job_id: str) -> dict[str, Any]:
        """Return what the script `inspect` says of an item, by the names of the manifest."""
        names = [field["name"] for field in manifest()["scripts"]["inspect"]["reply"][0]["fields"]]
        found = self._run("inspect", 1, job_id)
        return {
            name: value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
            for name, value in zip(names, found, strict=True)
        }

    def data(self, job_id: str) -> bytes:
        """Return the data of an item. Raises ValueError if it is not there."""
        found: bytes | None = self.client.hget(self.prefix + "items", job_id)  # type: ignore[assignment]
        if found is None:
            raise ValueError(f"there is no item {job_id}")
        return found

    def headers(self, job_id: str) -> dict[str, str]:
        """Return the headers of an item."""
        extra = key_inspector.read(self.client, self.prefix).extras.get(job_id.encode())
        if not isinstance(extra, Extra):
            return {}
        return {
            name.removeprefix(b"header:").decode(): value.decode()
            for name, value in extra.pairs
            if name.startswith(b"header:")
        }

    def note(self, key: str) -> tuple[dict[str, Any] | None, int]:
        """Return what a note says, None if there is none, and for how many milliseconds it stays."""
        text: bytes | None = self.client.get(self.prefix + key)  # type: ignore[assignment]
        if text is None:
            return None, 0
        found: dict[str, Any] = json.loads(text)
        if "job" in found:
            found["job"] = base64.b64decode(found["job"], validate=True).decode("utf-8", "backslashreplace")
        return found, int(self.client.pttl(self.prefix + key))

    def finished(self) -> list[str]:
        """Return the ids of all jobs that are there or have left an outcome."""
        held: list[bytes] = self.client.hkeys(self.prefix + "items")  # type: ignore[assignment]
        kept: list[bytes] = self.client.zrange(self.prefix + "kept", 0, -1)  # type: ignore[assignment]
        return [each.decode() for each in (*held, *kept)]

    def make_refused(self, job_id: str, after_ms: int) -> None:
        """Move the time of the first refusal in an item's last error, in the form that its worker wrote (LQ-JOB-42).

        Raises ValueError if the error names none.
        """
        field = b"\0" + job_id.encode()
        extra: bytes = self.client.hget(self.prefix + "meta", field) or b""  # type: ignore[assignment]
        found = REFUSED.search(extra)
        if found is None:
            raise ValueError(f"the last error of {job_id} has no line `refused: <time>`")
        text = found[0].decode()
        moved = datetime.fromisoformat(text[:PLAIN_CHARS]) + timedelta(milliseconds=after_ms)
        changed = moved.isoformat(timespec="seconds") + text[PLAIN_CHARS:]
        self.client.hset(self.prefix + "meta", field, REFUSED.sub(changed.encode(), extra))

    def now_ms(self) -> int:
        """Return the server's time, in milliseconds."""
        seconds, micros = self.client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def _run(self, name: str, *argv: Any, more: tuple[str, ...] = ()) -> Any:
        script = SCRIPTS[name]
        keys = [self.prefix + key for key in (*script.keys, *more)]
        return self.client.eval(script.source, len(keys), *keys, *argv)


def _counted(options: Mapping[str, Any]) -> list[Any]:
    words = [
        word
        for name, value in options.items()
        for word in (name, int(value) if isinstance(value, bool) else value)
    ]
    return [len(options), *words]
