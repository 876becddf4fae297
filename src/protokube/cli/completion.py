"""`protokube completion`: what a shell sources to complete our commands."""

from __future__ import annotations

import click

from protokube.cli.shared.options import Choice


@click.command()
@click.argument("shell", type=Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Shell completion for bash, zsh or fish.

    \b
      source <(protokube completion bash)
      protokube completion fish > ~/.config/fish/completions/protokube.fish
    """
    from click.shell_completion import get_completion_class

    from protokube.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "protokube", "_PROTOKUBE_COMPLETE").source())
