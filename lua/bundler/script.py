"""A script: the data of its header, and the text that the server gets."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bundler.signature import Field, Signature


@dataclass(frozen=True)
class Key:
    """A key of a call."""

    name: str
    type: str
    content: str


@dataclass(frozen=True)
class MoreKeys:
    """Keys behind the fixed ones, once for each entry or the like."""

    each: str
    keys: list[str]


@dataclass(frozen=True)
class Script:
    """One script."""

    name: str
    summary: str
    keys: list[Key]
    more_keys: list[MoreKeys]
    signature: Signature
    errors: list[str]
    complexity: str
    source: str

    @property
    def sha1(self) -> str:
        """The digest that EVALSHA takes."""
        return hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    @property
    def more_keys_of(self) -> dict[str, list[str]]:
        """The keys behind the fixed ones, by what they are for."""
        return {more.each: more.keys for more in self.more_keys}

    def reply(self, scripts: Mapping[str, "Script"]) -> list[Field]:
        """Return the fields of the reply, those of another script in place of its name."""
        return [
            part
            for each in self.signature.reply
            for part in (scripts[each.type].signature.reply if each.type in scripts else [each])
        ]

    def plain(self) -> dict[str, Any]:
        """Return what the manifest has of the script, as JSON data."""
        return {
            "sha1": self.sha1,
            "summary": self.summary,
            "keys": [asdict(key) for key in self.keys],
            "more_keys": [asdict(more) for more in self.more_keys],
            **self.signature.plain(),
            "errors": self.errors,
            "complexity": self.complexity,
            "source": self.source,
        }
