"""The `leaseq` program, run as people run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

PROGRAM: Final = Path(sys.executable).with_name("leaseq")


def leaseq(*arguments: str, url: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run it to its end; `url` is its server and `given` its stdin."""
    environment = {**os.environ, "REDIS_URL": url}
    return subprocess.run(
        [PROGRAM, *arguments], input=given, capture_output=True, check=False, timeout=300, env=environment
    )
