"""The scripts of the protocol, read from `manifest.json`, which is the only place where the suite knows them from.

A wheel carries the manifest and the specification; in a source tree they are `lua/manifest.json` and `spec/`. A port can
name the manifest that it was made from, and then its scripts are used.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


class Script(NamedTuple):
    """A script: its name, the digest of its source, the names of its fixed keys in order, and its source."""

    name: str
    sha1: str
    keys: tuple[str, ...]
    source: str


def resource(packed: str, in_source_tree: str) -> Traversable:
    """A file or folder that a wheel carries beside this module and a source tree elsewhere."""
    found = resources.files("leaseq_conformance") / packed
    if found.is_file() or found.is_dir():
        return found
    return Path(__file__).resolve().parents[2] / in_source_tree


class ManifestError(Exception):
    """A manifest that this suite cannot use."""


@functools.cache
def manifest() -> dict[str, Any]:
    """The whole manifest."""
    found: dict[str, Any] = json.loads(resource("manifest.json", "lua/manifest.json").read_text("utf-8"))
    return found


PROTOCOL: Final[int] = manifest()["protocol"]
"""Version of the protocol that the suite checks."""
SCRIPTS: Final[dict[str, Script]] = {}
"""Every script by its name."""
NAMES_BY_DIGEST: Final[dict[str, str]] = {}
CONSTANTS: Final[dict[str, int]] = manifest()["constants"]
"""Numbers of the specification that a client needs."""
REPAIRS: Final = tuple(kind["name"] for kind in manifest()["scripts"]["deep_clean"]["reply"][-1]["fields"])
"""The kinds of damage that `deep_clean` counts, in the order of its reply."""


def use(path: Path) -> None:
    """Use the scripts of another manifest from now on, if only their sources differ from those that the suite knows.

    Raises:
        ManifestError: it is none, of another version of the protocol, or describes calls that the suite does not make.
    """
    try:
        other = json.loads(path.read_text("utf-8"))
        problem = _problem(other)
        scripts = {} if problem else _scripts(other)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ManifestError(f"{path} is no manifest of leaseq: {error!r}") from error
    if problem:
        raise ManifestError(
            f"{path} does not fit this suite: {problem}. Install the leaseq-conformance that was published with it"
        )
    _install(scripts)


def _problem(other: dict[str, Any]) -> str:
    """Why the suite cannot use this manifest; empty if it can."""
    known = manifest()
    if other["protocol"] != PROTOCOL:
        return (
            f"it is of version {other['protocol']} of the protocol, and the suite checks version {PROTOCOL}"
        )
    for what in ("constants", "scripts"):
        missing = sorted(known[what].keys() - other[what].keys())
        if missing:
            return f"its {what} lack {', '.join(missing)}"
    for name, value in known["constants"].items():
        if other["constants"][name] != value:
            return f"its constant {name} is {other['constants'][name]}, and the suite expects {value}"
    for name, script in known["scripts"].items():
        for what, mine in _call(script).items():
            if _call(other["scripts"][name])[what] != mine:
                return f"the {what} of its script {name} are not those that the suite knows"
    return ""


def _call(script: dict[str, Any]) -> dict[str, list[Any]]:
    """Return what a caller of the script has to know: its keys, arguments and options in order, and its reply."""
    more = [key for each in script["more_keys"] for key in each["keys"]]
    return {
        "keys": [*(key["name"] for key in script["keys"]), *more],
        **{
            what: _without_text(script[what])
            for what in ("arguments", "entry", "follow_up", "options", "reply")
        },
    }


def _without_text(fields: list[dict[str, Any]]) -> list[Any]:
    """Fields without what is said of them for people."""
    return [
        {
            name: _without_text(value) if name == "fields" else value
            for name, value in field.items()
            if name != "text"
        }
        for field in fields
    ]


def _scripts(of: dict[str, Any]) -> dict[str, Script]:
    return {
        name: Script(name, script["sha1"], tuple(key["name"] for key in script["keys"]), script["source"])
        for name, script in of["scripts"].items()
    }


def _install(scripts: dict[str, Script]) -> None:
    """Replace the scripts in place, because modules have imported the tables."""
    SCRIPTS.clear()
    SCRIPTS.update(scripts)
    NAMES_BY_DIGEST.clear()
    NAMES_BY_DIGEST.update({script.sha1: name for name, script in scripts.items()})


_install(_scripts(manifest()))
