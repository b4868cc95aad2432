"""`manage.py leaseq_relay`: hands on the jobs of the outbox."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from leaseq.errors import LeaseqError
from leaseq.outbox import Relay
from leaseq.outbox.django import rows


class Command(BaseCommand):  # type: ignore[misc] # Django has no types
    """The command; `leaseq outbox relay` does the same for SQLAlchemy."""

    help = (
        "Add the jobs of committed transactions to their queues, until it is stopped by SIGTERM or Ctrl-C."
        " A row is deleted once the queue has its job."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument(
            "--url", help="the server of the queues; default: LEASEQ_URL of the settings, or $REDIS_URL"
        )
        parser.add_argument(
            "--database", help="alias of the database; default: where the router writes the outbox"
        )
        parser.add_argument(
            "--poll", default="1s", help="longest pause between two looks at an empty table; default: 1s"
        )
        parser.add_argument(
            "--once", action="store_true", help="hand on what is there, and exit; with 1 if rows are left"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the relay."""
        url = options["url"] or getattr(settings, "LEASEQ_URL", None)
        try:
            with Relay(url, rows(options["database"]), poll=options["poll"]) as relay:
                if not options["once"]:
                    relay.run()
                    return
                relay.run_once()
                is_left = relay.refused > 0 or relay.left()
        except LeaseqError as error:
            raise CommandError(str(error)) from error
        if is_left:
            sys.exit(1)
