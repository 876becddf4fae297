"""`protokube get`: what the state store holds."""

from __future__ import annotations

import json
import sys

import click

from protokube.cli.options import output_option, store_option


@click.command()
@click.argument("cluster", metavar="[CLUSTER]", required=False)
@store_option(required=True)
@output_option(default="yaml")
@click.option("--as-written", is_flag=True, help="The spec as the user wrote it, not the complete configuration.")
def get(cluster: str | None, store_url: str, output: str, as_written: bool) -> None:
    """Read clusters back from a state store.

    Without CLUSTER: the names of the clusters in it.

    \b
      protokube get --store s3://bucket/clusters
      protokube get dev.example.com --store s3://bucket/clusters
    """
    from protokube.store import layout
    from protokube.store.open import open_store

    store = open_store(store_url)
    try:
        if cluster is None:
            names = list(layout.clusters(store))
            click.echo(json.dumps(names) if output == "json" else "\n".join(names) or f"no cluster in {store.url}")
            return
        paths = [layout.config(cluster)] if as_written else [layout.complete_spec(cluster)]
        if not as_written:
            paths += store.list_paths(layout.instance_groups(cluster))
        texts = [(path, store.read(path).data.decode()) for path in paths]
    finally:
        store.close()
    if output == "json":
        from protokube.config.document import write_json
        from protokube.spec.plain import plain_documents

        write_json(plain_documents(texts), sys.stdout)
    else:
        click.echo("---\n".join(text for _, text in texts), nl=False)
