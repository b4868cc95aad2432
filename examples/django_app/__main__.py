"""The command `python -m django_app`: the web application, a worker, the relay of the outbox and a server."""

import os
import time

from example_run.programs import Programs
from example_run.web import ANSWER_SECONDS, call, run


def start(programs: Programs, fd: int) -> None:
    """Create the tables. Start the web server, a worker and the relay."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "django_app.settings"
    migrate()
    programs.start("gunicorn", "django_app.wsgi", "--bind", f"fd://{fd}", "--log-level", "warning", fds=(fd,))
    programs.start("leaseq", "worker", "django_app.jobs:app", "--processes", "1")
    programs.start("django-admin", "leaseq_relay")


def migrate() -> None:
    """Create the tables, as `manage.py migrate` does."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def check(url: str) -> None:
    """Place an order whose invoice is written and an order that is rolled back, and print what happens."""
    code, taken = call("POST", f"{url}/orders", {"customer": "Ada", "euros": 700})
    print("POST /orders for 700 euros:", code, taken)
    print(f"GET /orders/{taken['number']}:", invoiced(f"{url}/orders/{taken['number']}"))
    print("POST /orders for 400 euros:", *call("POST", f"{url}/orders", {"customer": "Ada", "euros": 400}))
    print("GET /orders:", *call("GET", f"{url}/orders"))


def invoiced(order: str) -> object:
    """Return an order once its job has succeeded. Raises SystemExit if that takes too long."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        _, found = call("GET", order)
        if found["job"] == "succeeded":
            return found
        time.sleep(0.05)
    raise SystemExit(f"the order has no invoice: {found}")


if __name__ == "__main__":
    run("django_app", start, check)
