"""Kinds of arguments that click has not: durations and points in time, which are functions that it calls."""

import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from leaseq import listen_address
from leaseq.durations import parsed
from leaseq.errors import BadArgumentError

Function = Callable[..., Any]


def duration(value: str | float) -> float:
    """A duration such as 30, 30s, 500ms, 5m, 2h, 7d: its seconds. Raises click.BadParameter."""
    try:
        return parsed(str(value))
    except BadArgumentError as error:
        raise click.BadParameter(str(error)) from None


def positive_duration(value: str | float) -> float:
    """A duration above 0: its seconds. Raises click.BadParameter."""
    seconds = duration(value)
    if seconds <= 0:
        raise click.BadParameter("that is no time at all; leave it out for no limit")
    return seconds


def moment(value: str | float) -> float:
    """A date and time with its offset from UTC, or seconds since 1970: the latter. Raises click.BadParameter."""
    with contextlib.suppress(ValueError):
        return float(value)
    try:
        when = datetime.fromisoformat(str(value))
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no time; write 2026-12-24T18:00:00Z or seconds since 1970"
        ) from None
    if when.tzinfo is None:
        raise click.BadParameter(
            f"{value!r} does not say which time zone; write {value}Z for UTC, or {value}+01:00"
        )
    return when.timestamp()


def address(_context: click.Context, _parameter: click.Parameter, text: str) -> str | None:
    """HOST:PORT, or None for off. Raises click.BadParameter."""
    if text == "off":
        return None
    try:
        listen_address.parsed(text)
    except BadArgumentError as error:
        raise click.BadParameter(f"{error}, or off") from None
    return text


def listen_option(command: str) -> Callable[[Function], Function]:
    """The option --listen of what works until it is stopped; the parameter is `listen`, HOST:PORT or None."""
    return click.option(
        "--listen",
        envvar=f"LEASEQ_{command.upper()}_LISTEN",
        show_envvar=True,
        default="off",
        show_default=True,
        callback=address,
        metavar="HOST:PORT",
        help="Where /metrics, /healthz and /readyz are served, or off. Needs the extra `cleaner`.",
    )


def lease_option(text: str) -> Callable[[Function], Function]:
    """The option --for, how long a lease is; the parameter is `lease_secs`."""
    return click.option("--for", "lease_secs", type=duration, default="30s", show_default=True, help=text)


def grace_option(what: str) -> Callable[[Function], Function]:
    """The option --grace of what works until it is stopped; the parameter is `grace_secs`."""
    text = f"How long {what} may go on after SIGTERM or Ctrl-C."
    return click.option("--grace", "grace_secs", type=duration, default="25s", show_default=True, help=text)
