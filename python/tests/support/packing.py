"""Looks at every command that leaseq packs in this process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from leaseq.commands import encoding

if TYPE_CHECKING:
    from leaseq.commands import Argument

_pack = encoding.pack


def checked(command: tuple[Argument, ...]) -> bytes:
    """Pack a command of str and bytes. Raises TypeError for any other."""
    for word in command:
        if type(word) not in {str, bytes}:
            raise TypeError(f"{word!r} is a part of the command {command[:2]}, which takes str and bytes")
    return _pack(command)


def check_all() -> None:
    """Check wherever the packer is used by its name."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "leaseq" and vars(module).get("pack") is _pack:
            module.pack = checked  # type: ignore[attr-defined]
