"""Put a complete configuration into the state store."""

from __future__ import annotations

import io
import json

import click

from protokube.config.complete import Config
from protokube.config.document import documents, write_yaml
from protokube.store import layout
from protokube.store.open import open_store


def write_store(config: Config, texts: list[tuple[str, str]], url: str, output: str) -> None:
    """The groups, then the cluster, which names its groups, then what the user wrote.

    Killed in between, a reader may see a group of the new configuration beside the old cluster; running the command
    again mends that. A group that left the spec stays in the store, named by nobody.
    """
    name = config.name
    cluster, *groups = documents(config)
    wanted = {layout.instance_group(name, each["metadata"]["name"]): _yaml(each) for each in groups}
    wanted[layout.complete_spec(name)] = _yaml(cluster)
    wanted[layout.config(name)] = "---\n".join(_whole_lines(text) for _, text in texts).encode()
    store = open_store(url)
    try:
        done = {path: "written" if store.put(path, data) else "unchanged" for path, data in wanted.items()}
    finally:
        store.close()
    if output == "json":
        click.echo(json.dumps({"store": store.url, "paths": done}, indent=2))
    else:
        for path, what in done.items():
            click.echo(f"{what:<9} {path}")


def _yaml(tree: dict[str, object]) -> bytes:
    out = io.StringIO()
    write_yaml([tree], out)
    return out.getvalue().encode()


def _whole_lines(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
