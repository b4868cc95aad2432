"""The shops that `make example-arq`, `example-rq` and `example-celery` run on that library, and then on leaseq."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from support.example_commands import output

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

ANSWERS = """\
  total: 33.0
  charge: order 7 is paid at attempt 3
  refund: failed with ValueError | order 7 was never paid
  remind: delayed True | again False
  remind: order 7 is due
  count_stock: ran twice
  the worker is stopped: 0
  pack: order 7 is packed""".splitlines()


LIBRARIES = ["arq", "rq", "celery"]


@pytest.fixture(scope="module")
def outputs() -> Iterator[dict[str, Future[list[str]]]]:
    """Run the shops and return the output of each. They run side by side, because they mostly wait."""
    with ThreadPoolExecutor() as pool:
        yield {library: pool.submit(output, library) for library in LIBRARIES}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_shop_gives_the_same_answers_after_the_move(
    library: str, outputs: dict[str, Future[list[str]]]
) -> None:
    # Celery runs a job twice that is enqueued twice with one id, so its shop does not try that
    expected = [line.removesuffix(" | again False") if library == "celery" else line for line in ANSWERS]
    assert outputs[library].result() == [
        f"from_{library}/before.py",
        *expected,
        f"from_{library}/after.py",
        *expected,
        "The answers are the same.",
    ]
