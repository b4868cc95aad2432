"""The command `python -m fastapi_app`: the web application, a worker and a server."""

import time

from example_run.programs import Programs
from example_run.web import ANSWER_SECONDS, call, run

SALES = [{"country": country, "amount": 100} for country in ("CH", "DE", "FR", "GB", "IT", "SE", "DE")]
WRONG = [{"country": "DE", "amount": -1}]


def start(programs: Programs, fd: int) -> None:
    """Start the web server and a worker."""
    programs.start("uvicorn", "fastapi_app.web:web", "--fd", str(fd), "--log-level", "warning", fds=(fd,))
    programs.start("leaseq", "worker", "fastapi_app.jobs:app", "--processes", "1")


def check(url: str) -> None:
    """Build a report that succeeds and a report that fails, and print what happens."""
    for sales in (SALES, WRONG):
        code, started = call("POST", f"{url}/reports", sales)
        print(f"POST /reports with {len(sales)} sales: {code}")
        report = f"{url}/reports/{started['id']}"
        watch(report)
        print("GET /reports/ID/result:", *call("GET", f"{report}/result?wait=30"))


def watch(report: str) -> None:
    """Print each new status and progress of a report until it has ended. Raises SystemExit if that takes too long."""
    deadline = time.monotonic() + ANSWER_SECONDS
    shown = None
    while time.monotonic() < deadline:
        code, seen = call("GET", report)
        if seen != shown:
            print("GET /reports/ID:", code, seen)
            shown = seen
        if seen["status"] in {"succeeded", "failed"}:
            return
        time.sleep(0.1)
    raise SystemExit(f"the report is not built: {shown}")


if __name__ == "__main__":
    run("fastapi_app", start, check)
