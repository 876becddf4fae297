"""`protokube stop`: end what runs of a local cluster, and keep its state."""

from __future__ import annotations

import json

import click

from protokube.cli.shared.cluster_view import cluster_option
from protokube.cli.shared.options import output_option
from protokube.cli.shared.progress import Progress


@click.command()
@cluster_option
@output_option(default="text", choices=("text", "json"))
def stop(cluster: str | None, output: str) -> None:
    """Stop a local cluster; `protokube start` starts it again.

    Ends etcd and all other processes of the hosts in order, unmounts and detaches the disks, and ends the local cloud.
    Disks, keys, certificates, ports and settings are kept, so nothing is lost and nothing runs. Stopping a stopped
    cluster changes nothing; a stop that was interrupted is completed by another one, or undone by `start`.

    \b
      protokube stop
      protokube stop --cluster second
    """
    from protokube.cli.shared.root import need_root
    from protokube.local.base.paths import Paths
    from protokube.local.choose import one_cluster
    from protokube.local.cloud import stopping

    need_root()
    name = one_cluster(cluster)
    progress = Progress(quiet=output == "json")
    with progress.step(f"{name}: stopped"):
        done = stopping.stop(Paths.of(name), tell=progress.say)
    if output == "json":
        click.echo(json.dumps({"cluster": name, "stopped": done}, indent=2))
    elif done:
        click.echo(f"{name}: {', '.join(done)}; `protokube start --cluster {name}` starts it again")
    else:
        click.echo(f"{name} was stopped already; `protokube start --cluster {name}` starts it")
