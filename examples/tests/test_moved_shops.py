"""The shops that `make example-arq`, `example-rq` and `example-celery` run on that library, and then on leaseq."""

from __future__ import annotations

import pytest
from support.example_commands import output

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


@pytest.mark.parametrize("library", ["arq", "rq", "celery"])
def test_a_shop_gives_the_same_answers_after_the_move(library: str) -> None:
    # Celery runs a job twice that is enqueued twice with one id, so its shop does not try that
    expected = [line.removesuffix(" | again False") if library == "celery" else line for line in ANSWERS]
    assert output(library) == [
        f"from_{library}/before.py",
        *expected,
        f"from_{library}/after.py",
        *expected,
        "The answers are the same.",
    ]
