"""`tanist completion`: the script that lets a shell complete commands, subcommands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_INSTALL = {
    "bash": (
        "tanist completion bash > ~/.local/share/bash-completion/completions/tanist",
        'in one shell only: eval "$(tanist completion bash)"',
    ),
    "zsh": (
        "tanist completion zsh > a file named _tanist in a folder of $fpath",
        'or in ~/.zshrc, after compinit: eval "$(tanist completion zsh)"',
    ),
    "fish": (
        "tanist completion fish > ~/.config/fish/completions/tanist.fish",
        "in one shell only: tanist completion fish | source",
    ),
}


@click.command("completion")
@click.argument("shell", type=click.Choice(tuple(_INSTALL)))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the shell's completion script.

    \b
    bash: tanist completion bash > \\
              ~/.local/share/bash-completion/completions/tanist
    zsh:  eval "$(tanist completion zsh)"   in ~/.zshrc, after compinit
    fish: tanist completion fish > ~/.config/fish/completions/tanist.fish

    Then start a new shell.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"there is no completion for {shell}")
    script = kind(ctx.find_root().command, {}, "tanist", "_TANIST_COMPLETE").source().strip()
    first, _, rest = script.partition("\n")
    note = "\n".join(f"# {line}" for line in ("To install:", *_INSTALL[shell]))
    # zsh reads the first line, `#compdef`.
    click.echo(f"{first}\n{note}\n{rest}" if first.startswith("#") else f"{note}\n{script}")
