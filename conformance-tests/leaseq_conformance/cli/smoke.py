"""The command `smoke`: the shortest check that an adapter works at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import click

from leaseq_conformance.adapter_process import AdapterError
from leaseq_conformance.adapter_protocol import b64
from leaseq_conformance.cli.options import (
    EXIT_BROKEN,
    BrokenAdapterError,
    adapter_argument,
    opened,
    server_options,
)

if TYPE_CHECKING:
    from leaseq_conformance.adapter_pool import CaseSession

TIMEOUT_SECS: Final = 60.0
ID, DATA = b64(b"a"), b64(b"\0\xff")
LEASE_MS: Final = 30_000


@click.command()
@server_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON and nothing else.")
@adapter_argument
def smoke(url: str | None, program: str | None, adapter: tuple[str, ...], *, as_json: bool) -> None:
    """Add, lease and complete one item through ADAPTER. If this fails, fix the adapter before you use `run`.

    Exits with 0 if it worked, with 4 if not.
    """
    with opened(adapter, url, program) as ((context,), about):
        context.server.flush()
        message = ""
        transcript: tuple[str, ...] = ()
        try:
            with context.session() as session:
                try:
                    message = _wrong(session)
                finally:
                    transcript = session.transcript()
        except AdapterError as error:
            if not as_json:
                click.echo("\n".join(transcript))
                raise BrokenAdapterError(error) from error
            message = str(error)
        if as_json:
            result = {"client": about.client, "server": about.server, "ok": not message, "message": message}
            click.echo(json.dumps(result))
        elif message:
            click.echo("\n".join(transcript))
            click.echo(f"smoke: {message}")
        else:
            click.echo(f"smoke: {about.client} added, leased and completed an item on {about.server}")
        if message:
            raise click.exceptions.Exit(EXIT_BROKEN)


def _wrong(session: CaseSession) -> str:
    """Return what is wrong with the answers; empty if they are right. Raises AdapterError."""
    item = {"id": ID, "data": DATA}
    added = session.call("w1", "q", "add", TIMEOUT_SECS, {"items": [item]})
    if (added.kind, added.value) != ("ok", ["added"]):
        return f'add was answered {added.kind} {json.dumps(added.value)}, expected ok ["added"]'
    leased = session.call("w1", "q", "lease", TIMEOUT_SECS, {"duration_ms": LEASE_MS})
    leases = leased.value["leases"] if leased.kind == "ok" else []
    if len(leases) != 1 or (leases[0]["id"], leases[0]["data"]) != (ID, DATA):
        expected = json.dumps({"leases": [item]})
        return f"lease was answered {leased.kind} {json.dumps(leased.value)}, expected ok {expected}"
    held = {"id": ID, "token": leases[0]["token"]}
    completed = session.call("w1", "q", "complete", TIMEOUT_SECS, {"items": [held]})
    if (completed.kind, completed.value) != ("ok", [True]):
        return f"complete was answered {completed.kind} {json.dumps(completed.value)}, expected ok [true]"
    return ""
