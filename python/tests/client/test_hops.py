"""How many functions a call passes: few enough that a reader can follow one from the top to the socket."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import leaseq
from leaseq import Item, jobs

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

PACKAGE = str(Path(leaseq.__file__).parent)


def passed(call: Callable[[], Any]) -> tuple[Any, set[CodeType]]:
    """What a call answers, and the functions of the package that it passes."""
    found: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.add(frame.f_code)

    before = sys.getprofile()
    gc.collect()
    gc.disable()  # what is ended then is no part of the call
    sys.setprofile(note)
    try:
        return call(), found
    finally:
        sys.setprofile(before)
        gc.enable()


def check(found: set[CodeType], functions: int, files: int) -> None:
    names = sorted(f"{Path(code.co_filename).relative_to(PACKAGE)} {code.co_qualname}" for code in found)
    assert len(names) <= functions, names
    assert len({code.co_filename for code in found}) <= files, names


def test_adding_and_leasing_an_item(url: str) -> None:
    with leaseq.WorkQueue("q", url) as queue:
        first, second = Item(b"x"), Item(b"y")
        queue.add_item(first)
        added, adding = passed(lambda: queue.add_item(second))
        assert added
        check(adding, 12, 6)
        queue.lease(30)
        leased, leasing = passed(lambda: queue.lease(30))
        assert leased.data == b"y"
        check(leasing, 20, 8)


def double(number: int) -> int:
    """The job."""
    return 2 * number


def test_enqueuing_a_job_and_its_result(url: str) -> None:
    app = jobs.App(url)
    job = app.job(result_ttl=60)(double)
    with app:
        job.enqueue(1)
        handle, enqueuing = passed(lambda: job.enqueue(2))
        app.run_worker(burst=True)
        handle.result(timeout=60)
        result, asking = passed(lambda: handle.result(timeout=60))
        assert result == 4
        check(enqueuing, 28, 15)  # aims: 20 and 10
        check(asking, 44, 19)  # aims: 25 and 10
