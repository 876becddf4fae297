"""`protokube start`: a stopped cluster runs again, also after a reboot of the machine.

Nothing is decided anew: the daemon has the groups and their templates, the store the configuration. `up` would complete
the spec again, with the versions that are on this machine now; this starts what was there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from protokube.cli.shared.cluster_view import cluster_option
from protokube.cli.shared.contexts import refresh_contexts
from protokube.cli.shared.durations import Duration
from protokube.cli.shared.options import output_option
from protokube.cli.shared.progress import Progress
from protokube.errors import Refused

if TYPE_CHECKING:
    from protokube.launch.machine import MasterConfig
    from protokube.local.base.paths import Paths
    from protokube.providers.clients.local import LocalClient
    from protokube.store import Store


@click.command()
@cluster_option
@click.option("--timeout", type=Duration(), default="5m", show_default=True, help="Longest wait for the cluster.")
@output_option(default="text", choices=("text", "json"))
def start(cluster: str | None, timeout: float, output: str) -> None:
    """Start a stopped cluster, also after a reboot of the machine.

    The same disks, etcd members, keys and versions. Hosts get new names and addresses, as after any power loss. Ports
    of this machine stay the same, unless another program has taken one; the kubeconfig is written again in any case.
    A cluster that runs is left as it is.

    \b
      protokube start
      protokube start --cluster second
    """
    from protokube.cli.render.table import several
    from protokube.cli.shared.root import need_root
    from protokube.cli.up.existing import refuse_half_removed
    from protokube.cli.up.waiting import await_nodes, await_ready, for_a_person
    from protokube.launch.revisions import in_force
    from protokube.local import bringup
    from protokube.local.base.paths import Paths
    from protokube.local.choose import one_cluster
    from protokube.providers import catalog
    from protokube.providers.clients.local import LocalClient
    from protokube.store.open import open_store

    need_root()
    name = one_cluster(cluster)
    paths, progress = Paths.of(name), Progress(quiet=output == "json")
    refuse_half_removed(paths)
    store = open_store(f"file://{paths.store}")
    found = in_force(store, name)
    if found is None or not paths.database.is_file():
        hint = f"`protokube up --cluster {name}` completes it"
        raise Refused(f"{name} was never brought up completely, so there is nothing to start", hint=hint)
    revision = found[1]
    with progress.step("the local cloud") as step:
        step.text = f"the local cloud {'started' if bringup.start_daemon(paths) else 'runs already'}"
        admin = LocalClient(paths.admin_socket, patience=catalog.OPERATOR_PATIENCE)
        need_groups(admin, name)
    with progress.step("ready") as step:
        variables = write_files(store, paths, admin, revision.master)
        refresh_contexts(paths)
        view = await_ready(progress, paths, timeout)
        step.text = several(len(view.members), "healthy member")
    if revision.master.kubelet_kubeconfig:
        with progress.step("nodes") as step:
            step.text = several(await_nodes(progress, paths, admin, timeout), "node") + " ready"
    result = {"cluster": name, "env": variables, "etcd": revision.etcd, "kubernetes": revision.kubernetes or None}
    click.echo(json.dumps(result, indent=2) if output == "json" else f"{name} runs: protokube status --cluster {name}")
    if view.person:
        raise for_a_person(view)


def need_groups(admin: LocalClient, name: str) -> None:
    """Refused if it has none: no host would ever be started, and waiting would not help."""
    if not admin.call("groups"):
        raise Refused(
            f"{name} was never brought up completely: it has no hosts",
            hint=f"`protokube up --cluster {name}` completes it",
        )


def write_files(store: Store, paths: Paths, admin: LocalClient, master: MasterConfig) -> dict[str, Any]:
    """The user's files of etcdctl and kubectl, with the ports as they are now."""
    from protokube.local import bringup
    from protokube.local.base import client_files

    bringup.write_client(store, paths, master)
    endpoints = [bringup.endpoints(admin, each) for each in master.etcd]
    variables = client_files.environment(paths, endpoints[0])
    if master.components:
        server = bringup.api_server(admin, master)
        variables["KUBECONFIG"] = str(bringup.write_kubeconfig(store, paths, master, server))
    client_files.write_environment(paths, variables)
    return variables
