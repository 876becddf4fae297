"""Add Kubernetes to a cluster that runs without: what must hold before anything is written, and how hosts are made.

Nothing here changes a cluster. The plan has the stages (`launch.versions`): the control plane first, on the hosts that
run; then kubelets, for which each host is replaced in its turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protokube.errors import Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from protokube.cli.up.change import Former
    from protokube.launch.machine import MasterConfig
    from protokube.local.base.paths import Paths
    from protokube.local.node.kubehost import Nodes
    from protokube.providers.groups import GroupProvider
    from protokube.store import Store

SURVEY = 2.0
PREFIX = "/registry"
"""Where an API server keeps its objects, unless its flag names another place."""


def check_addition(paths: Paths, store: Store, former: Former | None, wanted: MasterConfig) -> None:
    """Refused if etcd has keys that an API server would take for its own."""
    from protokube.launch.prepare import is_closed

    if former is None:
        return
    before = former.planned.base.master
    if not is_closed(store, before):  # it was never founded: nobody has written anything
        return
    if wanted.components and not before.components and not had_kubernetes(store, wanted.cluster):
        need_no_objects(paths, wanted)


def hosts_of(
    groups: GroupProvider, paths: Paths, zone: str, folders: Sequence[Path], nodes: Nodes | None
) -> Callable[[MasterConfig], None]:
    """Have the cloud make hosts for a configuration; with a container runtime if that has kubelets."""
    from protokube.launch import prepare
    from protokube.local import bringup

    def make(wanted: MasterConfig) -> None:
        plain = bringup.template(bringup.launch_data(wanted, zone), folders, paths)
        prepare.ensure_groups(
            groups, wanted, nodes.template(plain, wanted, paths) if nodes and wanted.kubelet_kubeconfig else plain
        )

    return make


def had_kubernetes(store: Store, cluster: str) -> bool:
    """Whether an earlier revision had it: objects in etcd are those of this cluster then."""
    from protokube.launch.revisions import by_number

    return any(each.master.components for each in by_number(store, cluster).values())


def need_no_objects(paths: Paths, wanted: MasterConfig) -> None:
    """TryLater if no member answers."""
    from protokube.local import bringup
    from protokube.providers.clients.local import LocalClient

    admin, prefix = LocalClient(paths.admin_socket, patience=5), prefix_of(wanted)
    for etcd in wanted.etcd:
        try:
            client = bringup.etcd_client(paths, bringup.endpoints(admin, etcd))
            try:
                names = sorted(client.survey(SURVEY))
                found = client.page(names[0], f"{prefix}/", 1) if names else None
            finally:
                client.close()
        except TryLater as why:
            raise silent(wanted.cluster, etcd.key, why.message) from why
        if found is None:
            raise silent(wanted.cluster, etcd.key, "no member answers")
        check_free(etcd.key, prefix, [each.key for each in found])


def silent(cluster: str, etcd: str, why: str) -> TryLater:
    return TryLater(
        f"etcd {etcd} does not answer, so Kubernetes cannot be added now", saw=why,
        hint=f"`protokube up --cluster {cluster}` brings it up as it was; then run it again",
    )  # fmt: skip


def check_free(etcd: str, prefix: str, following: Iterable[str]) -> None:
    """`following`: the first key at or after the prefix, if there is any."""
    if taken := [each for each in following if each.startswith(f"{prefix}/")]:
        raise Refused(
            f"etcd {etcd} has keys below {prefix}/, which Kubernetes would take for its own objects",
            saw=taken[0],
            want=f"no key below {prefix}/",
            hint="set kubeAPIServer.extraFlags.etcd-prefix to another place in the spec, or move these keys",
        )


def prefix_of(wanted: MasterConfig) -> str:
    flags = next((each.flags for each in wanted.components if each.name == "kube-apiserver"), {})
    return "/" + str(flags.get("etcd-prefix") or PREFIX).strip("/")
