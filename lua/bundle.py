"""Write `manifest.json` and every client's script module from `lua/*.lua`.

    python lua/bundle.py                 write the generated files
    python lua/bundle.py --check         exit 1 when a generated file is stale, naming it
    python lua/bundle.py --render DIR    write each script as it reaches the server (for luacheck)

A script starts with a header that says its keys, arguments, reply and errors. The header is checked against the code:
the keys against the line that binds KEYS, the errors against the errors raised. In front of it come the functions of `lib/`
that it calls (see `library.py`).
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import emit_python
import emit_typescript
from library import Library
from lua_source import without_comments
from signature import HeaderError, Script, parse

if TYPE_CHECKING:
    from collections.abc import Callable

LUA = Path(__file__).parent
ROOT = LUA.parent
with (LUA / "protocol.toml").open("rb") as file:
    SHARED = tomllib.load(file)
PROTOCOL = SHARED["protocol"]
TAG = re.compile(r"^-- @(?P<tag>\w+)(?P<text>\** .+)$")
TAGS = {"key", "keys", "arg", "entry", "follow_up", "option", "reply", "error", "complexity"}
KEY_TYPES = {"HASH", "ZSET", "STRING", "LIST"}
NAMED_FROM_THE_SERVER = {"LEASEQ_WRONG_TYPE", "LEASEQ_OUT_OF_MEMORY"}


def read_header(path: Path) -> tuple[str, dict[str, list[str]]]:
    """The summary and the tags of a script's header."""
    first, *rest = path.read_text().splitlines()
    if not first.startswith("--- "):
        message = f"{path.name}: the first line must be '--- ' and a summary"
        raise HeaderError(message)
    tags: dict[str, list[str]] = {}
    for line in rest:
        if not line.startswith("--"):
            break
        tag = TAG.match(line)
        if not tag:
            message = f"{path.name}: not a header line: {line}"
            raise HeaderError(message)
        if tag["tag"] not in TAGS:
            message = f"{path.name}: unknown tag @{tag['tag']}"
            raise HeaderError(message)
        tags.setdefault(tag["tag"], []).append(tag["text"].removeprefix(" "))
    for needed in ({"key", "keys"}, {"reply"}, {"error"}, {"complexity"}):
        if not needed & set(tags):
            message = f"{path.name}: the header lacks @{min(needed)}"
            raise HeaderError(message)
    return first[4:], tags


def bound_keys(path: Path) -> tuple[list[str], bool]:
    """The names that the script's own lines bind KEYS to, in order, and whether it takes more keys behind them."""
    names: list[str] = []
    rest = False
    for line in path.read_text().splitlines():
        if "KEYS" not in line or line.lstrip().startswith("--"):
            continue
        if re.fullmatch(rf"local \w+ = {{unpack\(KEYS, {len(names) + 1}\)}}", line):
            rest = True
            continue
        binding = re.fullmatch(r"local ([\w, ]+) = ((?:KEYS\[\d+\](?:, )?)+)", line)
        if not binding:
            message = f"{path.name}: KEYS may only be bound to locals: {line}"
            raise HeaderError(message)
        places = [int(n) for n in re.findall(r"\d+", binding[2])]
        if places != list(range(len(names) + 1, len(names) + 1 + len(places))):
            message = f"{path.name}: KEYS are bound out of order: {line}"
            raise HeaderError(message)
        names += binding[1].split(", ")
    return names, rest


def check_errors(name: str, declared: list[str], body: str) -> None:
    """The errors in the header are the errors raised."""
    raised = set(re.findall(r"LEASEQ_[A-Z_]+", body))
    in_header = set(declared)
    if missing := raised - in_header:
        message = f"{name}.lua: the header lacks {sorted(missing)}"
        raise HeaderError(message)
    if extra := in_header - raised - NAMED_FROM_THE_SERVER:
        message = f"{name}.lua: the header names errors that are never raised: {sorted(extra)}"
        raise HeaderError(message)


def more_keys(path: Path, text: str) -> dict[str, str | list[str]]:
    """Return what a script takes behind its fixed keys, from `each WHAT: KEY KEY ...`."""
    each = re.fullmatch(r"each (?P<what>[\w ]+): (?P<keys>\S+(?: \S+)*)", text)
    if not each:
        message = f"{path.name}: @keys says 'each WHAT: KEY ...', not {text!r}"
        raise HeaderError(message)
    return {"each": each["what"], "keys": each["keys"].split()}


def load(path: Path) -> Script:
    """One script, its header checked."""
    library = Library(LUA / "lib")
    name = path.stem
    summary, tags = read_header(path)
    keys = []
    for text in tags.get("key", []):
        key, kind, *content = [*text.split(" ", 2), ""]
        if kind not in KEY_TYPES:
            message = f"{path.name}: unknown key type {kind}"
            raise HeaderError(message)
        keys.append({"name": key, "type": kind, "content": content[0] if content else ""})
    bound, rest = bound_keys(path)
    if rest != ("keys" in tags):
        message = f"{path.name}: @keys and a line that binds the rest of KEYS go together"
        raise HeaderError(message)
    if bound != [key["name"] for key in keys]:
        message = f"{path.name}: the header says keys {[key['name'] for key in keys]}, the code binds {bound}"
        raise HeaderError(message)
    body = library.link(without_comments(path.read_text()))
    errors = " ".join(tags["error"]).split()
    check_errors(name, errors, "\n".join(body))
    source = "\n".join(
        [
            f"-- leaseq {name}, protocol {PROTOCOL}. Generated from lua/{name}.lua: do not edit.",
            "local ok, reply = pcall(function()",
            # Lua unpacks no more than some thousand values
            f"if #KEYS < {len(keys)} or #KEYS > 999 then" if rest else f"if #KEYS ~= {len(keys)} then",
            f"  error('LEASEQ_BAD_ARGUMENT {name} takes {len(keys)} keys{' and more' if rest else ''}', 0)",
            "end",
            "local call = redis.call",
            *body,
            "end)",
            "if ok then",
            "  return reply",
            "end",
            *library.link(
                ["local text = error_text(reply)", "return redis.error_reply(text)"], known=["reply"]
            ),
            "",
        ]
    )
    return Script(
        name=name,
        summary=summary,
        keys=keys,
        more_keys=[more_keys(path, text) for text in tags.get("keys", [])],
        signature=parse(name, tags, [path.stem for path in LUA.glob("*.lua")]),
        errors=errors,
        complexity=tags["complexity"][0],
        source=source,
    )


def manifest(scripts: list[Script]) -> str:
    """Return what a client in any language is generated from."""
    body = {
        **SHARED,
        "scripts": {
            script.name: {
                "sha1": script.sha1,
                "summary": script.summary,
                "keys": script.keys,
                "more_keys": script.more_keys,
                "arguments": [each.plain() for each in script.signature.arguments],
                "entry": [each.plain() for each in script.signature.entry],
                "follow_up": [each.plain() for each in script.signature.follow_up],
                "options": [each.plain() for each in script.signature.options],
                "reply": [each.plain() for each in script.signature.reply],
                "errors": script.errors,
                "complexity": script.complexity,
                "source": script.source,
            }
            for script in scripts
        },
    }
    return json.dumps(body, indent=2) + "\n"


def outputs() -> dict[Path, str]:
    """Every generated file and its content; an sdist has one client only."""
    scripts = [load(path) for path in sorted(LUA.glob("*.lua"))]
    clients: dict[Path, Callable[[dict[str, Any], list[Script]], str]] = {
        ROOT / "python/leaseq/_scripts.py": emit_python.scripts_module,
        ROOT / "python/leaseq/script_errors.py": emit_python.errors_module,
        ROOT / "python/leaseq/commands/codecs.py": emit_python.codecs_module,
        ROOT / "typescript/src/scripts.generated.ts": emit_typescript.scripts_module,
        ROOT / "typescript/src/script-errors.generated.ts": emit_typescript.errors_module,
        ROOT / "typescript/src/codecs.generated.ts": emit_typescript.codecs_module,
    }
    return {
        LUA / "manifest.json": manifest(scripts),
        **{path: module(SHARED, scripts) for path, module in clients.items() if path.parent.exists()},
    }


def render(folder: Path) -> None:
    """Write each script as it reaches the server."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(LUA.glob("*.lua")):
        (folder / path.name).write_text(load(path).source)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a generated file is stale"
    )
    parser.add_argument(
        "--render", type=Path, metavar="DIR", help="write each script as it reaches the server"
    )
    options = parser.parse_args()
    if options.render:
        render(options.render)
        return 0
    stale = [path for path, text in outputs().items() if not path.exists() or path.read_text() != text]
    if options.check:
        for path in stale:
            print(f"stale: {path.relative_to(ROOT)}; run make generate", file=sys.stderr)
        return 1 if stale else 0
    for path, text in outputs().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
