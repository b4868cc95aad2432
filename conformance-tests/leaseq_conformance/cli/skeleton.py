"""The command `skeleton`: what a port starts from."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import click

from leaseq_conformance.manifest import manifest


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def skeleton(folder: Path) -> None:
    """Write the smallest client that conforms, its adapter and its generator into FOLDER. Start a port from these.

    They are in Python, without a library, for you to translate: README.md in FOLDER says in which order.
    """
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"{folder} is not empty: name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    for part in (resources.files("leaseq_conformance") / "skeleton").iterdir():
        if part.is_file():
            (folder / part.name).write_text(part.read_text("utf-8"), "utf-8")
    (folder / "manifest.json").write_text(json.dumps(manifest(), indent=1, ensure_ascii=False), "utf-8")
    click.echo(f"Written. Go on with {folder / 'README.md'}")
