"""The generated files: the manifest, and for each client its scripts, codecs and errors."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bundler.environment import TEMPLATES, environment
from bundler.header import load_all
from bundler.language import Language, camel, lower_first, pascal
from bundler.script import Script


def generated_files(root: Path) -> dict[Path, str]:
    """Return the content of every generated file of a source tree; an sdist has one client only."""
    scripts = load_all(root / "lua")
    shared = tomllib.loads((root / "lua/protocol.toml").read_text())
    types = tomllib.loads((TEMPLATES / "types.toml").read_text())
    found = {root / "lua/manifest.json": _manifest(shared, scripts)}
    for values in TEMPLATES.glob("*/values.toml"):
        language = Language(values, types["words"])
        templates = environment(
            name=language.name,
            type=language.type,
            argument=language.argument,
            parameter=language.parameter,
            read=language.read,
            write=language.write,
            unit=language.unit,
            visible=language.visible,
            camel=camel,
            pascal=pascal,
            lowerFirst=lower_first,
        )
        for template, file in language.files.items():
            path = root / file
            if path.parent.exists():
                text = templates.get_template(f"{values.parent.name}/{template}").render(
                    **shared, scripts=scripts, types=types, unused=language.unused
                )
                found[path] = _formatted(path, text) if path.suffix == ".py" else text
    return found


def _manifest(shared: Mapping[str, Any], scripts: Mapping[str, Script]) -> str:
    """Return what a client in any language is generated from."""
    body = {**shared, "scripts": {name: script.plain() for name, script in scripts.items()}}
    return json.dumps(body, indent=2) + "\n"


def _formatted(path: Path, text: str) -> str:
    ruff = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(path), "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
