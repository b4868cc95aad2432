"""`leaseq dashboard`: serves the dashboard alone."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from leaseq import audit_log, listen_address
from leaseq.cli import output, stdio
from leaseq.cli.exit_codes import CommandError, ExitCode
from leaseq.cli.server import Server, on_server
from leaseq.errors import BadArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from leaseq.dashboard import Action

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
"""The names by which a browser reaches the loopback."""

GRACE_SECS: Final = 5
"""Seconds that open requests may take at the end."""


def _address(_context: click.Context, _parameter: click.Parameter, text: str) -> tuple[str, int]:
    try:
        return listen_address.parsed(text)
    except BadArgumentError as error:
        raise click.BadParameter(str(error)) from None


def _network(text: str) -> Any:
    """A proxy's address, or a network. Raises click.BadParameter."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no IP address and no network such as 10.0.0.0/8") from None


@click.command(short_help="Serve the dashboard: queues, items, jobs, workers in a browser.")
@on_server
@click.option(
    "--listen",
    default="127.0.0.1:8080",
    show_default=True,
    envvar="LEASEQ_DASHBOARD_LISTEN",
    show_envvar=True,
    callback=_address,
    metavar="HOST:PORT",
    help="Where it is served. Beyond this machine, it needs --auth or --trusted-proxy.",
)
@click.option(
    "--auth",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Ask for a name and a password, which this file has as hashes. Serve it over TLS then.",
)
@click.option(
    "--add-user",
    metavar="NAME",
    help="Write a user into the file of --auth, and exit. Asks for the password.",
)
@click.option(
    "--trusted-proxy",
    "proxies",
    type=_network,
    multiple=True,
    metavar="ADDRESS",
    help="Serve only this proxy, an IP address or a network, and take the user from its header X-Forwarded-User.",
)
@click.option(
    "--allowed-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name in the address of the dashboard, also of the proxy's. [default: localhost and the host of --listen]",
)
@click.option(
    "--root-path",
    default="",
    metavar="PATH",
    help="The path that a proxy puts before each address, such as /queues.",
)
@click.option("--allow-actions", is_flag=True, help="Let users change things. Without it they only look.")
@click.option(
    "--show-data", is_flag=True, help="Show data, arguments, headers and results. Without it they are hidden."
)
def dashboard(
    *,
    server: Server,
    listen: tuple[str, int],
    auth: Path | None,
    add_user: str | None,
    proxies: tuple[Any, ...],
    hosts: tuple[str, ...],
    root_path: str,
    allow_actions: bool,
    show_data: bool,
) -> None:
    """Serve the dashboard, until Ctrl-C or SIGTERM.

    What users change is written to the audit log, the file that $LEASEQ_AUDIT_LOG names. Needs the extra `dashboard`.

    \b
    Examples:
      leaseq dashboard
      leaseq dashboard --allow-actions --show-data
      leaseq dashboard --auth users --add-user ada
      leaseq dashboard --listen 0.0.0.0:8080 --auth users --allowed-host queues.example.org
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    if add_user is not None:
        _add_user(auth, add_user)
        return
    with stdio.needing(
        "dashboard", "leaseq dashboard: it needs", "starlette", "jinja2", "uvicorn", "msgspec"
    ):
        import uvicorn

        from leaseq.dashboard.application import Dashboard
    host, port = listen
    if not (auth or proxies or _is_loopback(host)):
        raise click.UsageError(
            f"on {host} others can reach the dashboard: give --auth FILE or --trusted-proxy ADDRESS, or listen on 127.0.0.1"
        )
    if auth and proxies:
        raise click.UsageError("give --auth or --trusted-proxy, not both")
    if root_path and not root_path.startswith("/"):
        raise click.BadParameter("it starts with a slash", param_hint="'--root-path'")
    logging.basicConfig(format="leaseq dashboard: %(message)s", level=logging.WARNING)
    logging.getLogger("leaseq.dashboard").setLevel(logging.INFO)

    def allow(_request: Request, action: Action) -> bool:
        return action == "read" or (show_data if action == "data" else allow_actions)

    app = Dashboard(
        server.named(),
        allow,
        hosts={*hosts, *LOOPBACK_NAMES, host},
        login=_login(auth, proxies),
        purges=allow_actions,
    )
    with _listening(host, port) as listening:
        address = f"[{host}]" if ":" in host else host
        click.echo(f"leaseq dashboard: http://{address}:{listening.getsockname()[1]}{root_path}/", err=True)
        settings = uvicorn.Config(
            app,
            root_path=root_path.rstrip("/"),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_SECS,
        )
        running = uvicorn.Server(settings)

        def stop(*_: object) -> None:
            running.should_exit = True

        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when it has ended
            signal.signal(number, stop)
        running.run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises CommandError."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise CommandError(
            f"cannot listen on {host}:{port}: {error.strerror}; --listen takes another HOST:PORT",
            ExitCode.BAD_INPUT,
        ) from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _login(auth: Path | None, proxies: tuple[Any, ...]) -> Callable[[ASGIApp], ASGIApp]:
    """Return what finds out the user of a request. Raises BadArgumentError, OSError."""
    from leaseq.dashboard.authentication import LocalUser, PasswordLogin, ProxyLogin
    from leaseq.dashboard.passwords import Passwords

    if auth is not None:
        passwords = Passwords(auth)
        return lambda app: PasswordLogin(app, passwords)
    if proxies:
        return lambda app: ProxyLogin(app, proxies)
    name = audit_log.system_user()
    return lambda app: LocalUser(app, name)


def _add_user(auth: Path | None, name: str) -> None:
    """Write a user into the file, in place of an earlier line of this name. Raises BadArgumentError, OSError."""
    if auth is None:
        raise click.UsageError("--add-user needs --auth FILE, the file to write")
    with stdio.needing("dashboard", "leaseq dashboard: it needs", "starlette", "jinja2", "msgspec"):
        from leaseq.dashboard.passwords import line_of
    password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    line = line_of(name, password)
    lines = auth.read_text(encoding="utf-8").splitlines() if auth.exists() else []
    kept = [each for each in lines if each.partition(":")[0] != name]
    written = auth.with_name(f"{auth.name}.new")
    file = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as stream:
        stream.write("".join(f"{each}\n" for each in [*kept, line]))
    written.replace(auth)
    output.line(f"wrote {name} to {auth}")
