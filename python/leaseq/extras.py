"""The extras of the package, and how one is installed in this environment."""

import json
from importlib import metadata
from typing import Any
from urllib.parse import unquote, urlsplit


def install_command(extra: str) -> str:
    """Return the command that installs an extra from where this package came from: an index, a folder, a file or a repository."""
    requirement = f"leaseq[{extra}]"
    origin = _origin()
    url = str(origin.get("url", ""))
    if origin.get("dir_info", {}).get("editable"):
        return f"pip install -e '{unquote(urlsplit(url).path)}[{extra}]'"
    if vcs := origin.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    return f"pip install '{requirement} @ {url}'" if url else f"pip install '{requirement}'"


def missing(extra: str, what: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return the error for an import that needs an extra."""
    return ModuleNotFoundError(
        f"{what} needs the extra `{extra}` (there is no {error.name}): {install_command(extra)}",
        name=error.name,
    )


def _origin() -> dict[str, Any]:
    """Return what pip wrote about where the package came from (PEP 610); empty if it came from an index or is not installed."""
    try:
        text = metadata.distribution("leaseq").read_text("direct_url.json")
        found: dict[str, Any] = json.loads(text) if text else {}
    except (metadata.PackageNotFoundError, ValueError):
        return {}
    return found
