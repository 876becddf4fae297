"""`protokube list`: the local clusters of this machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.shared.options import output_option

if TYPE_CHECKING:
    from protokube.local.view.summary import Summary


@click.command("list")
@output_option(default="text", choices=("text", "json", "yaml"))
def list_clusters(output: str) -> None:
    """List the local clusters: state, masters, versions, age.

    The state is taken from the local cloud of each cluster and from the files on disk; no member is asked, so it takes
    a second at the most. `protokube status --cluster NAME` looks at one of them closely. A cluster whose state this
    user may not read is listed with that reason.

    \b
      protokube list
      protokube list -o json
    """
    from protokube.cli.render.table import lasting, table
    from protokube.cli.shared.screen import show_data, show_painted
    from protokube.local.choose import clusters
    from protokube.local.view.summary import summaries

    found = summaries(clusters())
    if output != "text":
        show_data([tree(each) for each in found], output)
        return
    now = time.time()
    rows = [
        (each.name, f"{each.state}{f': {each.why}' if each.why else ''}", _count(each.masters), _kubernetes(each),
         each.etcd, lasting(now - each.made) if each.made is not None else "")
        for each in found
    ]  # fmt: skip
    header = ("NAME", "STATE", "MASTERS", "KUBERNETES", "ETCD", "AGE")
    show_painted(table(header, rows) or ["there is no local cluster on this machine: `protokube up` makes one"])


def _count(number: int | None) -> str:
    return "" if number is None else str(number)


def _kubernetes(each: Summary) -> str:
    return each.kubernetes or ("none" if each.etcd else "")


def tree(each: Summary) -> dict[str, Any]:
    """One cluster as data; what is not known is null."""
    return {
        "name": each.name, "state": each.state, "why": each.why or None, "masters": each.masters,
        "kubernetes": each.kubernetes or None, "etcd": each.etcd or None, "created": each.made,
        "folder": str(each.folder),
    }  # fmt: skip
