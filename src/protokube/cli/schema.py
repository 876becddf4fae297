"""`protokube schema`: print the JSON Schema of spec documents."""

from __future__ import annotations

import json

import click

from protokube.cli.shared.options import Choice


@click.command()
@click.option("--kind", type=Choice(["Cluster", "InstanceGroup"]), help="Only this kind of document.")
def schema(kind: str | None) -> None:
    """Print the JSON Schema of spec documents, for editors.

    \b
      protokube schema > protokube.schema.json
      # first line of a spec, for editors with a YAML language server:
      # yaml-language-server: $schema=protokube.schema.json
    """
    from protokube.spec.schema import json_schema

    click.echo(json.dumps(json_schema(kind), indent=2))
