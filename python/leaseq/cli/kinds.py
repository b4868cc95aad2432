"""Kinds of arguments that click has not: durations and points in time, which are functions that it calls; states."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime
from typing import Final

import click

STATES: Final = ("ready", "delayed", "leased", "dead")
"""The states of an item."""

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?) *([a-z]*)", re.ASCII)


def duration(value: str | float) -> float:
    """A duration such as 30, 30s, 500ms, 5m, 2h, 7d: its seconds. Raises click.BadParameter."""
    match = _DURATION.fullmatch(str(value).strip())
    if match is None or match[2] not in _SECONDS:
        raise click.BadParameter(f"{value!r} is no duration; write 30s, 500ms, 5m, 2h or 7d")
    return float(match[1]) * _SECONDS[match[2]]


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
        message = f"{value!r} is no time; write 2026-12-24T18:00:00Z or seconds since 1970"
        raise click.BadParameter(message) from None
    if when.tzinfo is None:
        raise click.BadParameter(
            f"{value!r} does not say which time zone; write {value}Z for UTC, or {value}+01:00"
        )
    return when.timestamp()
