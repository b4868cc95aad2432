"""Draw the pictures of the command line (`make pictures`): commands run on a temporary server, their output as SVG."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest import mock

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

import leaseq
from leaseq.cli import output
from leaseq.cli.live_stats import LiveStats
from leaseq.cli.program import program
from leaseq.worker import DeadLetter, Release, Worker

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER: Final = Path(__file__).parent / "pictures"
WIDTH: Final = 96
LOOKS: Final = 40
FORMAT: Final = (
    re.sub(  # the reader's own font: a picture in a page fetches nothing from elsewhere
        r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL
    )
)


def draw(name: str, title: str, fill: Callable[[Console], None]) -> None:
    """Write what is printed on a terminal to a file."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(
            file=nowhere,
            record=True,
            width=WIDTH,
            force_terminal=True,
            color_system="truecolor",
            highlight=False,
        )
        fill(console)
        svg = console.export_svg(title=title, code_format=FORMAT, unique_id=name)
    (FOLDER / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")


def type_in(console: Console, *commands: str) -> None:
    """Run commands as if they were typed."""
    with mock.patch.object(output, "show", console.print):
        for number, command in enumerate(commands):
            console.print(
                f"{'' if number == 0 else chr(10)}[bold green]$[/] leaseq {command}",
                markup=True,
            )
            with contextlib.suppress(SystemExit):
                program(shlex.split(command), prog_name="leaseq")


def handle(item: leaseq.LeasedItem) -> None:
    """Work a while; now and then the bank is away, and some customers do not exist."""
    time.sleep(0.03 + 0.005 * (len(item.data) % 7))
    digits = sum(map(int, filter(str.isdigit, item.id)))
    if digits == 11 and item.attempt == 1:
        raise Release("timeout: bank")
    if digits == 13:
        raise DeadLetter("no such customer")


def watch_a_day(orders: leaseq.WorkQueue, console: Console) -> None:
    """The live view after some seconds of work that comes in waves."""
    seen = LiveStats(orders.name)
    worker = Worker(orders, handle, concurrency=6, handle_signals=False)
    working = threading.Thread(target=worker.run)
    working.start()
    for look in range(LOOKS):
        wave = 30 if look % 15 < 5 else 6
        orders.add_items(
            leaseq.Item(b"two books", id=f"order-{look}-{n}") for n in range(wave)
        )
        orders.add_item(leaseq.Item(b"a reminder", id=f"reminder-{look}"), delay=3)
        time.sleep(0.15)
        seen.add(orders.stats())
    console.print("[bold green]$[/] leaseq stats orders --watch\n", markup=True)
    console.print(seen.render())
    worker.stop()
    working.join()


def main() -> None:
    """Draw all."""
    logging.getLogger("leaseq").setLevel(
        logging.CRITICAL
    )  # failures are part of the picture
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="leaseq-pictures-") as folder:
        os.environ["REDIS_URL"] = f"embedded:{folder}"
        with (
            leaseq.WorkQueue("orders") as orders,
            leaseq.WorkQueue("mails", group="shop") as mails,
        ):
            draw("stats-watch", "leaseq", lambda console: watch_a_day(orders, console))
            mails.add_items(
                leaseq.Item(f"Dear {name}", id=f"mail-{name}")
                for name in ("Ada", "Bob", "Eve")
            )
            mails.lease(30)
            commands = (
                "queues",
                "list mails leased -g shop",
                "peek mails -g shop",
                "dead list orders --limit 3",
            )
            draw("looking", "leaseq", lambda console: type_in(console, *commands))


if __name__ == "__main__":
    main()
