"""An existing cluster: `up` run again continues with it, and refuses a configuration that differs too much.

Kubernetes and kubelets can be added to a cluster without them, and not be removed.

The members of a closed etcd cluster cannot be changed by a spec: a new member would get a blank disk on which no agent
may found it, and the cluster would wait for it forever. So the configurations are compared before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from protokube.cli.shared.templates import kubelets_follow
from protokube.cli.up.anew import OtherShape, of
from protokube.errors import InvalidSpec, TryLater

if TYPE_CHECKING:
    from protokube.cli.shared.inputs import Texts
    from protokube.launch.machine import EtcdCluster
    from protokube.local.base.paths import Paths
    from protokube.spec.parse import Spec


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """The properties of a cluster that `up` cannot change, and its versions."""

    kubernetes: str
    """Its version, or `none`; empty before the first host is created. It can be added, and not removed."""
    kubelet: bool
    """The same for real kubelets."""
    masters: tuple[str, ...]
    """Their instance groups, with one host each."""
    members: tuple[str, ...]
    """The members of all etcd clusters: `main/a`."""
    etcd: str = field(default="", compare=False)
    """Its version; not compared, because etcd may be upgraded."""
    named: str = field(default="", compare=False)
    """The version of Kubernetes in its spec, which a cluster without Kubernetes may have, too."""
    recorded: bool = field(default=False, compare=False)
    """Whether it has revisions: which versions may follow is decided from them (`launch.versions`)."""
    pending: bool = field(default=False, compare=False)
    """Its kubelets are only to follow: no revision with them was put in force, so they can be declined still."""

    @staticmethod
    def of(kubernetes: str, kubelet: bool, members: Iterable[tuple[str, str]], etcd: str = "") -> ClusterShape:
        """`members`: pairs of a member and the instance group that may hold it."""
        groups = dict(members)
        return ClusterShape(kubernetes, kubelet, tuple(sorted(set(groups.values()))), tuple(sorted(groups)), etcd)

    def __str__(self) -> str:
        what = "no Kubernetes" if self.kubernetes == "none" else f"Kubernetes {self.kubernetes}"
        runner = "the real kubelet" if self.kubelet else "the built-in pod runner"
        return f"{what}, {runner}, masters {', '.join(self.masters)}, etcd members {', '.join(self.members)}"


def members_of(etcd: Iterable[EtcdCluster]) -> list[tuple[str, str]]:
    return [(f"{each.key}/{member.short}", member.group) for each in etcd for member in each.members]


def existing_cluster(cluster: str) -> ClusterShape | None:
    """The existing cluster; None if there is none."""
    from protokube.launch.revisions import in_force
    from protokube.local.base.paths import Paths
    from protokube.local.view.sources import master_config
    from protokube.store.file import FileStore

    paths = Paths.of(cluster)
    if not paths.is_ours():
        return None
    refuse_half_removed(paths)
    if (found := in_force(FileStore(paths.store), cluster)) is not None:
        _, wanted = found  # also while it is rolled out: an upgrade that was interrupted goes on, and not back
        version, master = wanted.kubernetes or "none", wanted.master
        pending = kubelets_follow(wanted.note)
        kubelet = bool(master.kubelet_kubeconfig) or pending
        shape = ClusterShape.of(version, kubelet, members_of(master.etcd), wanted.etcd)
        return replace(shape, recorded=True, named=_version_named(wanted.spec), pending=pending)
    config = master_config(paths, sorted(each.name for each in paths.hosts.glob("*")))
    clusters = _etcd_clusters(paths)
    etcd = str(clusters[0].get("version") or "") if clusters else ""
    if config is None:  # interrupted before the first host; there may be disks already
        members = [each for etcd_cluster in clusters for each in _members_in(etcd_cluster)]
        return ClusterShape.of("", False, members, etcd) if members else None
    version = config.components[0].image.rpartition(":v")[2] if config.components else "none"
    return ClusterShape.of(version, bool(config.kubelet_kubeconfig), members_of(config.etcd), etcd)


def refuse_half_removed(paths: Paths) -> None:
    """OtherShape for what an interrupted removal left: without its database or disks, nothing can go on with it."""
    if paths.removing.exists():
        hint = f"`protokube down --cluster {paths.cluster}` completes it"
        raise of(paths.cluster, OtherShape(f"{paths.cluster} was not removed completely", hint=hint))


def _version_named(text: str) -> str:
    from protokube.spec.parse import read

    try:
        return str(read([("spec", text)]).cluster.get("kubernetesVersion") or "") if text else ""
    except InvalidSpec:  # of another version of protokube
        return ""


def _etcd_clusters(paths: Paths) -> list[Any]:
    """The etcd clusters in the stored complete configuration."""
    from protokube.spec.plain import plain_documents
    from protokube.store import layout

    text = _kept(paths, layout.complete_spec(paths.cluster))
    match list(plain_documents([text] if text else [])):
        case [{"spec": {"etcdClusters": [*clusters]}}]:
            return clusters
    return []


def _members_in(cluster: Any) -> list[tuple[str, str]]:
    return [(f"{cluster['name']}/{each['name']}", each.get("instanceGroup") or "") for each in cluster["members"]]


def kept_spec(cluster: str) -> tuple[Spec, Texts] | None:
    """The stored spec of an existing cluster, which is used if no other spec is given."""
    from protokube.local.base.paths import Paths
    from protokube.spec.parse import read
    from protokube.store import layout

    paths = Paths.of(cluster)
    text = _kept(paths, layout.config(cluster)) if paths.is_ours() else None
    return (read([text]), [text]) if text else None


def _kept(paths: Paths, path: str) -> tuple[str, str] | None:
    from protokube.cli.shared.inputs import text_of
    from protokube.store import NotThere
    from protokube.store.file import FileStore

    try:
        data = FileStore(paths.store).read(path).data
    except NotThere:
        return None
    file = str(paths.store / path)
    return file, text_of(data, file)


def keep_earlier_release(before: ClusterShape | None, spec: Spec | None, release: str) -> str:
    """The Kubernetes version; if none is given, the earlier one."""
    named = spec.cluster.get("kubernetesVersion") if spec else None
    asks = named and before and (before.kubernetes != "none" or named != before.named)
    return before.kubernetes if before and not release and not asks else release


def need_unchanged(cluster: str, before: ClusterShape | None) -> None:
    """TryLater if another `up` made or removed it since `before` was read, on which all decisions rest."""
    if existing_cluster(cluster) != before:
        hint = "run the same command again, when the other one has ended"
        raise TryLater(f"another `up` has changed {cluster} meanwhile", hint=hint)


def refuse_less(cluster: str, before: ClusterShape, now: ClusterShape) -> None:
    """Refused if a part is to be removed that others rely on."""
    hint = (
        f"`protokube up --cluster {cluster}` keeps what it has; `protokube down --cluster {cluster}` removes it with "
        f"its data, and then `up` creates it anew; `protokube rollout undo --cluster {cluster}` ends an addition that "
        "is unfinished"
    )
    if now.kubernetes == "none" and before.kubernetes != "none":
        raise of(cluster, OtherShape(
            f"Kubernetes cannot be removed from {cluster}: etcd holds its objects, and nothing would clean them up",
            saw=str(before), want=str(now), hint=hint,
        ))  # fmt: skip
    if before.kubelet and not now.kubelet and not before.pending:
        raise of(cluster, OtherShape(
            f"kubelets cannot be removed from {cluster}: its nodes run pods, which nothing would move",
            saw=str(before), want=str(now), hint=hint,
        ))  # fmt: skip


def need_the_same(
    cluster: str, before: ClusterShape | None, now: ClusterShape, *, masters: int | None = None, events: bool = False
) -> None:
    """Refused if the existing cluster differs. `masters`, `events`: options given in addition to the stored spec."""
    if before is None:
        return
    if not before.kubernetes:
        before = replace(before, kubernetes=now.kubernetes, kubelet=now.kubelet)
    elif not before.recorded:  # by an early version of protokube, whose agents take no revisions
        if "none" not in (before.kubernetes, now.kubernetes):
            now = replace(now, kubernetes=before.kubernetes)
    else:
        refuse_less(cluster, before, now)
        now = replace(now, kubernetes=before.kubernetes, kubelet=before.kubelet)  # changes like others: `launch.plan`
    differences = [str(now)] if now != before else []
    if masters not in (None, len(before.masters)):
        differences.append(f"--masters {masters}")
    if events and not any(each.startswith("events/") for each in before.members):
        differences.append("--events")
    if differences:
        raise of(cluster, OtherShape(
            f"{cluster} exists already, with a different configuration", saw=str(before), want="; ".join(differences),
            hint=f"`protokube up --cluster {cluster}` continues with the existing cluster; "
            f"`protokube down --cluster {cluster}` removes it with its data, and then `up` creates it anew",
        ))  # fmt: skip
