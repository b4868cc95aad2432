"""`leaseq acl`."""

import re

import click

from leaseq import access_rules
from leaseq.cli import output
from leaseq.cli.server import in_group


def _user_name(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[^\s\0]+", value):
        raise click.BadParameter("a user's name has no spaces")
    return value


@click.command(short_help="Print the access rules of a user, by ROLE, ready to paste.")
@click.argument("role", type=click.Choice(access_rules.ROLES))
@click.option("--user", metavar="NAME", callback=_user_name, help="The user's name. [default: the role]")
@in_group
@click.option(
    "--queue", "-q", metavar="QUEUE", help="Only this queue; its group is its name unless --group says."
)
@click.option(
    "--durable",
    type=click.Choice(tuple(access_rules.WAITS_FOR)),
    multiple=True,
    help="Calls may wait for replicas or for disks (durable=). May be given twice.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("setuser", "aclfile")),
    default="setuser",
    show_default=True,
    help="A command for redis-cli, or a line for the server's aclfile or configuration.",
)
def acl(
    *,
    role: str,
    user: str | None,
    group: str | None,
    queue: str | None,
    durable: tuple[str, ...],
    form: str,
) -> None:
    """Print the least access rules with which the programs of ROLE work, ready to paste. Asks no server.

    A producer adds items and waits for outcomes. A worker leases and completes them, and can add. A cleaner is
    leaseq-cleaner. A reader looks. A job-client enqueues jobs and steers them, a job-worker is leaseq worker with
    jobs that do the same. An operator may do all, leaseq doctor too. Without --group and --queue the rules are for every queue. Change the password.

    \b
    Examples:
      leaseq acl worker
      leaseq acl job-worker --user shop
      leaseq acl producer --group shop --format aclfile >> users.acl
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    start = "ACL SETUSER" if form == "setuser" else "user"
    rules = access_rules.rules(role, group=group, queue=queue, durable=durable)
    output.line(" ".join((start, user or role, *rules)))
