"""Where settings come from: flags, then LEASEQ_CLEANER_* of the environment, then a TOML file, then what is built in."""

import tomllib
from pathlib import Path
from typing import Any

import click

ENVIRONMENT = "LEASEQ_CLEANER"
NOT_IN_FILE = {"config", "once", "dry_run", "version", "help"}
"""Options of one call, not of the service."""


def read_file(context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Make the values of the file the defaults of the flags. Raises click.BadParameter with what is wrong."""
    if path is None:
        return None
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.BadParameter(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path} is no TOML: {error}") from None
    known = {
        parameter.name: parameter
        for parameter in context.command.params
        if parameter.name and parameter.name not in NOT_IN_FILE
    }
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        parameter = known.get(name)
        if parameter is None:
            names = ", ".join(sorted(each.replace("_", "-") for each in known))
            raise click.BadParameter(f"{path}: unknown key {key!r}; there are {names}")
        try:
            defaults[name] = _checked(parameter, value, context)
        except click.BadParameter as error:
            raise click.BadParameter(f"{path}: {key}: {error.message}") from None
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def _checked(parameter: click.Parameter, value: Any, context: click.Context) -> Any:
    """The value as it is, if the flag would take it."""
    if parameter.multiple:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise click.BadParameter("must be a list of strings")
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise click.BadParameter("must be a string or a number")
    parameter.type_cast_value(context, str(value))
    return str(value)
