"""`protokube complete --why PATH`."""

from __future__ import annotations

import json

import click

from protokube.config.complete import Config
from protokube.config.why import why


def tell_why(config: Config, path: str, output: str) -> None:
    """One sentence for each value; as data, the sentences in a list."""
    sentences = why(config, path)
    if output == "json":
        click.echo(json.dumps(sentences, indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(sentences))
