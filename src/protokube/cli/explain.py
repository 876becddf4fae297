"""`protokube explain`: why is this waiting, and where does it come from?"""

from __future__ import annotations

import click

from protokube.cli.cluster_view import cluster_option
from protokube.cli.options import output_option


@click.command()
@click.argument("kind", type=click.Choice(["volume", "member", "record"]))
@click.argument("name")
@cluster_option
@output_option(default="text", choices=("text", "json", "yaml"))
def explain(kind: str, name: str, cluster: str | None, output: str) -> None:
    """Why a volume, a member or a name waits, or where it comes from.

    All that the cloud, the store, the agents and etcd itself say about it, in one place, and what would happen next.
    Works before there is an API.

    \b
      protokube explain volume vol-1f2e3d4c
      protokube explain member etcd-a
      protokube explain record api.internal.dev.example.com
    """
    from protokube.cli.cluster_view import find_cluster
    from protokube.cli.render_explain_member import explain_member
    from protokube.cli.render_explain_record import explain_record
    from protokube.cli.render_explain_volume import explain_volume
    from protokube.cli.render_screen import show_data, show_painted
    from protokube.local.view import look

    ways = {"volume": explain_volume, "member": explain_member, "record": explain_record}
    told = ways[kind](look(find_cluster(cluster)), name)
    if output == "text":
        show_painted(told.lines())
    else:
        show_data(told.tree(), output)
