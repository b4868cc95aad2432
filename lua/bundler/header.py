"""The header of a script: read, and held against the code.

It says the keys, arguments, reply and errors. The keys are held against the lines that bind KEYS, the errors against those raised.
"""

import re
import tomllib
from pathlib import Path

from bundler.environment import environment
from bundler.library import Library
from bundler.lua_source import without_comments
from bundler.script import Key, MoreKeys, Script
from bundler.signature import HeaderError, parse

TAG = re.compile(r"^-- @(?P<tag>\w+)(?P<text>\** .+)$")
TAGS = {"key", "keys", "arg", "entry", "follow_up", "option", "reply", "error", "complexity"}
KEY_TYPES = {"HASH", "ZSET", "STRING", "LIST"}
FRAME = environment().get_template("script.lua.jinja")
NAMED_FROM_THE_SERVER = {"LEASEQ_WRONG_TYPE", "LEASEQ_OUT_OF_MEMORY"}


def load_all(folder: Path) -> dict[str, Script]:
    """Return the scripts of a folder by name, each behind the functions that it calls.

    Raises:
        HeaderError: a header is malformed, or the code contradicts it.
        LinkError: a function of the library is malformed, or a call cannot be replaced by its body.
    """
    library = Library(folder / "lib")
    protocol = tomllib.loads((folder / "protocol.toml").read_text())["protocol"]
    paths = sorted(folder.glob("*.lua"))
    return {path.stem: _load(path, library, protocol, [each.stem for each in paths]) for path in paths}


def _load(path: Path, library: Library, protocol: int, scripts: list[str]) -> Script:
    name = path.stem
    summary, tags = _header(path)
    keys = [_key(name, text) for text in tags.get("key", [])]
    more_keys = [_more_keys(name, text) for text in tags.get("keys", [])]
    _check_keys(name, path.read_text(), keys, more_keys)
    body = library.link(without_comments(path.read_text()))
    errors = " ".join(tags["error"]).split()
    _check_errors(name, errors, "\n".join(body))
    failure = library.link(
        ["local text = error_text(reply)", "return redis.error_reply(text)"], known=["reply"]
    )
    return Script(
        name=name,
        summary=summary,
        keys=keys,
        more_keys=more_keys,
        signature=parse(name, tags, scripts),
        errors=errors,
        complexity=tags["complexity"][0],
        source=FRAME.render(
            name=name, protocol=protocol, keys=len(keys), more=bool(more_keys), body=body, failure=failure
        ),
    )


def _header(path: Path) -> tuple[str, dict[str, list[str]]]:
    """Return the summary and the tags of a script."""
    first, *rest = path.read_text().splitlines()
    if not first.startswith("--- "):
        raise HeaderError(f"{path.name}: the first line must be '--- ' and a summary")
    tags: dict[str, list[str]] = {}
    for line in rest:
        if not line.startswith("--"):
            break
        tag = TAG.match(line)
        if not tag:
            raise HeaderError(f"{path.name}: not a header line: {line}")
        if tag["tag"] not in TAGS:
            raise HeaderError(f"{path.name}: unknown tag @{tag['tag']}")
        tags.setdefault(tag["tag"], []).append(tag["text"].removeprefix(" "))
    for needed in ({"key", "keys"}, {"reply"}, {"error"}, {"complexity"}):
        if not needed & set(tags):
            raise HeaderError(f"{path.name}: the header lacks @{min(needed)}")
    return first[4:], tags


def _key(script: str, text: str) -> Key:
    name, kind, content = [*text.split(" ", 2), "", ""][:3]
    if kind not in KEY_TYPES:
        raise HeaderError(f"{script}.lua: unknown key type {kind}")
    return Key(name, kind, content)


def _more_keys(script: str, text: str) -> MoreKeys:
    each = re.fullmatch(r"each (?P<each>[\w ]+): (?P<keys>\S+(?: \S+)*)", text)
    if not each:
        raise HeaderError(f"{script}.lua: @keys says 'each NOUN: KEY ...', not {text!r}")
    return MoreKeys(each["each"], each["keys"].split())


def _check_keys(script: str, source: str, keys: list[Key], more_keys: list[MoreKeys]) -> None:
    """Check that the script binds its keys to names of the header, in order, and the rest if there are more."""
    bound: list[str] = []
    rest = False
    for line in source.splitlines():
        if not re.search(r"\bKEYS\b", line) or line.lstrip().startswith("--"):
            continue
        if re.fullmatch(rf"local \w+ = {{unpack\(KEYS, {len(bound) + 1}\)}}", line):
            rest = True
            continue
        binding = re.fullmatch(r"local ([\w, ]+) = ((?:KEYS\[\d+\](?:, )?)+)", line)
        if not binding:
            raise HeaderError(f"{script}.lua: KEYS may only be bound to locals: {line}")
        places = [int(place) for place in re.findall(r"\d+", binding[2])]
        if places != list(range(len(bound) + 1, len(bound) + 1 + len(places))):
            raise HeaderError(f"{script}.lua: KEYS are bound out of order: {line}")
        bound += binding[1].split(", ")
    if rest != bool(more_keys):
        raise HeaderError(f"{script}.lua: @keys and a line that binds the rest of KEYS go together")
    if bound != [key.name for key in keys]:
        raise HeaderError(
            f"{script}.lua: the header says keys {[key.name for key in keys]}, the code binds {bound}"
        )


def _check_errors(script: str, declared: list[str], body: str) -> None:
    """Check that the errors of the header are the errors raised."""
    raised = set(re.findall(r"LEASEQ_[A-Z_]+", body))
    if missing := raised - {*declared}:
        raise HeaderError(f"{script}.lua: the header lacks {sorted(missing)}")
    if extra := {*declared} - raised - NAMED_FROM_THE_SERVER:
        raise HeaderError(f"{script}.lua: the header names errors that are never raised: {sorted(extra)}")
