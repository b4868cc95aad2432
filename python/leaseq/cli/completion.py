"""`leaseq completion`."""

import click
from click.shell_completion import get_completion_class


@click.command(short_help="Print what makes SHELL complete commands and options.")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands and options of leaseq.

    \b
    Examples:
      leaseq completion bash > ~/.local/share/bash-completion/completions/leaseq
      leaseq completion zsh > ~/.zfunc/_leaseq
      leaseq completion fish > ~/.config/fish/completions/leaseq.fish
    """  # noqa: D301 (click's mark for text that is not to be wrapped)
    made = get_completion_class(shell)
    if made is None:  # never, for these three; tells the type checker
        raise click.BadParameter(shell)
    click.echo(made(ctx.find_root().command, {}, "leaseq", "_LEASEQ_COMPLETE").source())
