"""Says what a benchmark is doing."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO


class Progress:
    """Says what is going on: a live line in a terminal, plain lines elsewhere; on standard output unless told."""

    def __init__(self, to: TextIO | None = None) -> None:
        self._to = to or sys.stdout
        self._status: Any = None
        self._started = time.monotonic()
        if self._to.isatty():
            try:
                from rich.console import Console
            except ModuleNotFoundError:
                return
            self._status = Console(file=self._to).status("")
            self._status.start()

    def tell(self, text: str) -> None:
        """One step is done."""
        line = f"{time.monotonic() - self._started:4.0f} s  {text}"
        if self._status is None:
            print(line, flush=True, file=self._to)
        else:
            self._status.update(line)

    def end(self) -> None:
        """Give the terminal back."""
        if self._status is not None:
            self._status.stop()
