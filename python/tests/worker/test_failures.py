"""Every exception of a handler is reported and logged, whatever its text."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from support.background_worker import TIMEOUT_SECS, background_worker
from support.servers import wait_until
from support.unusual_errors import ERRORS, raise_error

from leaseq import Item

if TYPE_CHECKING:
    from pathlib import Path

    from support.client_flavours import ClientFlavour


def test_any_exception_of_a_handler_is_told_and_logged(
    queue: Any, flavour: ClientFlavour, tmp_path: Path
) -> None:
    names = [name for name in ERRORS if name != "retry"]
    queue.add_items([Item(b"", id=name) for name in names])
    log = logging.FileHandler(tmp_path / "log", encoding="utf-8")
    logger = logging.getLogger("leaseq.worker")
    logger.addHandler(log)
    try:
        with background_worker(flavour, queue, lambda item: raise_error(item.id), max_attempts=1):
            wait_until(lambda: queue.stats().dead == len(names), TIMEOUT_SECS)
    finally:
        logger.removeHandler(log)
        log.close()
    text = (tmp_path / "log").read_text(encoding="utf-8")
    for name in names:
        _, kind, message = ERRORS[name]
        error = queue.inspect(name).error
        assert message in error if kind == "DeadLetter" else kind in error, name
        assert f"item {name!r} dies" in text
