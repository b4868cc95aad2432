"""The program: which commands there are, and what is common to their help and their ends."""

import importlib
from typing import Any, Final

import click

import leaseq
from leaseq.cli import exit_codes

_SECTIONS: Final = {
    "Work": {
        "exec": "exec",
        "worker": "worker",
        "jobs": "jobs",
        "outbox": "outbox",
    },
    "Items": {
        "add": "add",
        "lease": "leases",
        "complete": "leases",
        "release": "leases",
        "extend": "leases",
        "promote": "removal",
        "remove": "removal",
        "expire": "removal",
    },
    "Look": {
        "dashboard": "dashboard",
        "queues": "queues",
        "workers": "workers",
        "steer": "workers",
        "stats": "stats",
        "peek": "items",
        "inspect": "items",
        "list": "items",
        "doctor": "doctor",
    },
    "Look after": {
        "dead": "dead",
        "pause": "maintenance",
        "resume": "maintenance",
        "configure": "maintenance",
        "clean": "maintenance",
        "delete": "maintenance",
        "drain": "removal",
    },
    "Move": {
        "export": "export",
        "import": "import_",
        "import-redis-work-queue": "import_redis_work_queue",
    },
    "Other": {
        "acl": "acl",
        "completion": "completion",
    },
}
"""The commands, by section of the help, and the module that each is in, seen from this package."""

_MODULES: Final = {name: module for section in _SECTIONS.values() for name, module in section.items()}


class Program(exit_codes.ErrorHandlingGroup):
    """A group whose commands are imported when they are called for, so that a command in a script's loop starts fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All names, in the order of the help."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name."""
        if cmd_name not in _MODULES:
            return None
        module = importlib.import_module(f".{_MODULES[cmd_name]}", "leaseq.cli")
        found = [each for each in vars(module).values() if isinstance(each, click.Command)]
        return next(each for each in found if each.name == cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands of each section, and the exit codes."""
        for title, names in _SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl(
                    [(name, command.get_short_help_str(70)) for name, command in commands if command]
                )
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in exit_codes.MEANINGS.items()])

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Read the options of the program itself: of them, --help and --version write."""
        try:
            return super().make_context(*args, **options)
        except click.NoSuchOption as error:
            text = f"{error.format_message().rstrip('.')}; options of a command go after its name"
            raise click.UsageError(text, error.ctx) from error
        except BrokenPipeError:  # click's own end for it is 1
            raise click.exceptions.Exit(exit_codes.close_stdout()) from None

    def main(self, *args: Any, **options: Any) -> Any:
        """Run, and end with one of the documented exit codes."""
        run = super().main
        exit_codes.end(lambda: run(*args, **{**options, "standalone_mode": False}))


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(leaseq.__version__, prog_name="leaseq", message="%(prog)s %(version)s")
def program() -> None:
    """Work queues with leases on Redis and Valkey.

    For details of a command, run it with --help. Name the server with --url or $REDIS_URL.

    \b
    Example:
      export REDIS_URL=redis://localhost
      leaseq add orders "two books"
      leaseq exec orders -- ./handle-order
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
