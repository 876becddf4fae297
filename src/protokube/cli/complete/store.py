"""Write a complete configuration to the state store."""

from __future__ import annotations

import json

import click

from protokube.config.complete import Config
from protokube.store.configuration import put_config
from protokube.store.open import open_store


def write_store(config: Config, texts: list[tuple[str, str]], url: str, output: str) -> None:
    store = open_store(url)
    try:
        done = put_config(store, config, texts)
    finally:
        store.close()
    if output == "json":
        click.echo(json.dumps({"store": store.url, "paths": done}, indent=2))
    else:
        for path, what in done.items():
            click.echo(f"{what:<9} {path}")
