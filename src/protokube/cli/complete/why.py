"""`protokube complete --why PATH`."""

from __future__ import annotations

import json

import click

from protokube.config.complete import Config
from protokube.config.why import why


def show_why(config: Config, path: str, output: str) -> None:
    """Print one sentence for each value below the path; as JSON, a list of sentences."""
    sentences = why(config, path)
    if output == "json":
        click.echo(json.dumps(sentences, indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(sentences))
