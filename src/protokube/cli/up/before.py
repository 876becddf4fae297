"""What there is of a cluster already: `up` asked again goes on with it, and refuses what would make it another one.

The members of a closed etcd cluster cannot be changed by a spec: a new one would get a blank disk that nobody may found
anything on, and the cluster would wait for it for ever. So what is asked for is compared before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from protokube.errors import Refused

if TYPE_CHECKING:
    from protokube.agent.wanted import EtcdCluster
    from protokube.cli.shared.inputs import Texts
    from protokube.local.base.paths import Paths
    from protokube.spec.parse import Spec


@dataclass(frozen=True, slots=True)
class Made:
    """What a cluster was made with."""

    kubernetes: str
    """Its version, or `none`; nothing while there is no host."""
    kubelet: bool
    masters: tuple[str, ...]
    """By the groups they are in: one host each."""
    members: tuple[str, ...]
    """Of every etcd cluster: `main/a`."""
    etcd: str = field(default="", compare=False)
    """Its version; a later one may take its place."""

    @staticmethod
    def of(kubernetes: str, kubelet: bool, members: Iterable[tuple[str, str]], etcd: str = "") -> Made:
        """`members`: each with the group that may hold it."""
        told = dict(members)
        return Made(kubernetes, kubelet, tuple(sorted(set(told.values()))), tuple(sorted(told)), etcd)

    def __str__(self) -> str:
        what = "no Kubernetes" if self.kubernetes == "none" else f"Kubernetes {self.kubernetes}"
        runner = "the real kubelet" if self.kubelet else "the built-in pod runner"
        return f"{what}, {runner}, masters {', '.join(self.masters)}, etcd members {', '.join(self.members)}"


def members_of(etcd: Iterable[EtcdCluster]) -> list[tuple[str, str]]:
    return [(f"{each.key}/{member.short}", member.group) for each in etcd for member in each.members]


def made_before(cluster: str) -> Made | None:
    """What is there; None where there is nothing."""
    from protokube.local.base.paths import Paths
    from protokube.local.view.sources import master_config

    paths = Paths.of(cluster)
    if not paths.is_ours():
        return None
    told = master_config(paths, sorted(each.name for each in paths.hosts.glob("*")))
    clusters = _etcd_clusters(paths)
    etcd = str(clusters[0].get("version") or "") if clusters else ""
    if told is None:  # cut short before the first host: there may be disks already
        members = [each for told in clusters for each in _members_in(told)]
        return Made.of("", False, members, etcd) if members else None
    version = told.components[0].image.rpartition(":v")[2] if told.components else "none"
    return Made.of(version, bool(told.kubelet_kubeconfig), members_of(told.etcd), etcd)


def _etcd_clusters(paths: Paths) -> list[Any]:
    """As the complete configuration has them."""
    from protokube.spec.plain import plain_documents
    from protokube.store import layout

    text = _kept(paths, layout.complete_spec(paths.cluster))
    match list(plain_documents([text] if text else [])):
        case [{"spec": {"etcdClusters": [*clusters]}}]:
            return clusters
    return []


def _members_in(told: Any) -> list[tuple[str, str]]:
    return [(f"{told['name']}/{each['name']}", each.get("instanceGroup") or "") for each in told["members"]]


def kept_spec(cluster: str) -> tuple[Spec, Texts] | None:
    """What a cluster that is there was made from: it goes on with that where no other spec is given."""
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


def carried_on(before: Made | None, spec: Spec | None, release: str, kubelet: bool) -> tuple[str, bool]:
    """The version and the kubelet; what nobody says now is as it was made."""
    if before is None:
        return release, kubelet
    named = spec.cluster.get("kubernetesVersion") if spec else None
    if not release and (before.kubernetes == "none" or not named):
        release = before.kubernetes
    return release, kubelet or (before.kubelet and release != "none")


def need_the_same(
    cluster: str, before: Made | None, now: Made, *, masters: int | None = None, events: bool = False
) -> None:
    """Half a cluster of another kind helps nobody. `masters`, `events`: what was said beside the spec that is kept."""
    if before is None:
        return
    if not before.kubernetes:
        before = replace(before, kubernetes=now.kubernetes, kubelet=now.kubelet)
    asked = [str(now)] if now != before else []
    if masters not in (None, len(before.masters)):
        asked.append(f"--masters {masters}")
    if events and not any(each.startswith("events/") for each in before.members):
        asked.append("--events")
    if asked:
        raise Refused(
            f"{cluster} is there already, and was made with something else", saw=str(before), want="; ".join(asked),
            hint=f"`protokube up --cluster {cluster}` goes on with what is there; "
            f"`protokube down --cluster {cluster}` takes it away, with its data, and then `up` makes it anew",
        )  # fmt: skip
