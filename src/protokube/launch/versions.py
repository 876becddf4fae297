"""Which steps between versions of Kubernetes and etcd a running cluster may take, and in which order. Pure.

Masters are upgraded one after the other, so two versions run side by side for a while, and only neighbours are made for
that. The way back is short: once all members of an etcd cluster run a new minor version, etcd raises the cluster's own
version, and an older program refuses its data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from protokube.errors import Problem
from protokube.launch.change import API_SERVER, KUBE_PROXY, needs_other_machine
from protokube.launch.machine import EtcdCluster, MasterConfig
from protokube.spec.version import Version, parse

SYNCED = Version(3, 5, 26)
"""The first etcd whose members repair their membership data before 3.6 relies on it (etcd-io/etcd#19557, #20793).

Before, a learner that was promoted, as our replaced members are, may be a learner again under 3.6, and members that
were removed may reappear."""
NEXT = "go up one minor version at a time"


@dataclass(frozen=True, slots=True, kw_only=True)
class StillOld:
    """Versions that are in use beside newer ones: programs may return to them, and not below. None by default."""

    etcd: Mapping[str, str] = field(default_factory=dict)
    """By etcd cluster: the version that its members have agreed on, which is that of the oldest."""
    kubernetes: str = ""
    """The oldest version of an API server; empty if all run the same."""


def steps_refused(before: MasterConfig, after: MasterConfig, still: StillOld | None = None) -> Iterator[Problem]:
    """Why a running cluster cannot go from these versions to those; nothing if it can."""
    still = still or StillOld()
    for old in before.etcd:
        new = after.etcd_cluster(old.key)
        if new and (old.pod.image, old.version) != (new.pod.image, new.version):
            yield from _etcd(old, new, still.etcd.get(old.key, ""))
    if kubernetes_of(before) and kubernetes_of(after):
        yield from _kubernetes(before, after, still.kubernetes)


def jumps(before: MasterConfig, after: MasterConfig) -> tuple[str, ...]:
    """Why one master cannot go up from these versions to those, whatever a command let through; nothing if it can.

    Whether it can go down depends on what etcd's members have agreed on: `lowered`, `may_run`.
    """
    down = StillOld(etcd={each.key: version_of(each) for each in after.etcd}, kubernetes=kubernetes_of(after))
    return tuple(f"{each.path}: {each.message}" for each in steps_refused(before, after, down))


def lowered(before: MasterConfig, after: MasterConfig) -> tuple[str, ...]:
    """The etcd clusters whose programs would go back by a minor version."""
    pairs = [(old, after.etcd_cluster(old.key)) for old in before.etcd]
    return tuple(old.key for old, new in pairs if new and _series(version_of(new)) < _series(version_of(old)))


def raised(before: MasterConfig, after: MasterConfig) -> tuple[str, ...]:
    """The etcd clusters whose programs get another version, upwards."""
    pairs = [(old, after.etcd_cluster(old.key)) for old in before.etcd]
    return tuple(old.key for old, new in pairs if new and _parsed(version_of(old)) < _parsed(version_of(new)))


def may_run(wanted: EtcdCluster, agreed: str) -> bool:
    """Whether these programs can serve data whose cluster has agreed on a version; True if one is not known."""
    version = version_of(wanted)
    return not agreed or not version or _series(agreed) <= _series(version)


def in_use(agreed: str, members: Iterable[str]) -> str:
    """The oldest version that holds for an etcd cluster whose members run these; "" if none of them is known.

    Members that all run a newer version than they have agreed on agree on it within seconds: there is no way back then.
    """
    known = [each for each in members if parse(each)]
    return max(agreed, min(known, key=_parsed), key=_series) if agreed and known else ""


def rehearsed(old: EtcdCluster, new: EtcdCluster, agreed: str) -> tuple[str, ...]:
    """The images whose programs start a copy of the data before members run the new one.

    The old one proves that the copy is a way back. There is none once the members have agreed on a newer version.
    """
    return tuple(each.pod.image for each in (old, new) if may_run(each, agreed))


def version_of(etcd: EtcdCluster) -> str:
    """Configurations of an older protokube lack the version; the tag of the image has it then. Empty if it does not."""
    return etcd.version or _tag(etcd.pod.image)


def kubernetes_of(wanted: MasterConfig) -> str:
    """The same for Kubernetes."""
    images = [each.image for each in wanted.components if each.name == API_SERVER]
    return wanted.kubernetes or next(map(_tag, images), "")


def one_way(before: MasterConfig, after: MasterConfig) -> tuple[str, ...]:
    """What cannot be undone once all masters run it, in sentences."""
    found = []
    for old in before.etcd:
        new = after.etcd_cluster(old.key)
        was, now = version_of(old), version_of(new) if new else ""
        if was and _series(was) < _series(now):
            words = f"etcd {old.key} {_short(was)} -> {_short(now)}"
            found.append(f"{words}: once all members run it, {_short(was)} cannot read the data any more")
    was, now = kubernetes_of(before), kubernetes_of(after)
    if was and _series(was) < _series(now):
        words = f"Kubernetes {_short(was)} -> {_short(now)}"
        found.append(
            f"{words}: once all API servers run it, objects may be stored in forms that the old one cannot read"
        )
    return tuple(found)


def stages(before: MasterConfig, after: MasterConfig) -> tuple[MasterConfig, ...]:
    """The configurations that masters take in turn, each on all masters before the next; the last one is `after`.

    etcd comes first, so that a component that fails returns without it. A kubelet or kube-proxy connects to any API
    server and must not be newer than that, so they follow when all API servers are upgraded, and go back before them.
    Kubelets that are added come last: their stage replaces machines, and whatever else is wrong has shown by then.
    """
    before = replace(before, revision=after.revision, addons=after.addons)  # no part of what masters run
    found = [after]
    was, now = kubernetes_of(before), kubernetes_of(after)
    if was and before.kubelets and was != now:  # without kubelets there is nothing to wait for
        up = _parsed(was) < _parsed(now)
        found.insert(0, _with_nodes_of(after, before) if up else _with_nodes_of(before, after))
    if after.kubelet_kubeconfig and needs_other_machine(before, after):
        found.insert(0, without_kubelets(after))
    if any(_version_in(before, each.key) not in ("", version_of(each)) for each in after.etcd):
        found.insert(0, replace(before, etcd=after.etcd))
        found[1:-1] = [replace(each, etcd=after.etcd) for each in found[1:-1]]
    steps = [before, *found]
    return tuple(each for former, each in pairwise(steps) if each != former) or (after,)


def without_kubelets(wanted: MasterConfig) -> MasterConfig:
    """The same control plane on machines that are no nodes."""
    return replace(
        wanted,
        components=tuple(each for each in wanted.components if each.name != KUBE_PROXY),
        kubeconfigs={path: user for path, user in wanted.kubeconfigs.items() if user != KUBE_PROXY},
        kubelets={},
        kubelet_kubeconfig="",
        kubelet_api="",
        pod_network=False,
    )


def _with_nodes_of(one: MasterConfig, other: MasterConfig) -> MasterConfig:
    """The control plane of one configuration with the kubelets and kube-proxy of another."""
    proxy = {each.name: each for each in other.components if each.name == KUBE_PROXY}
    return replace(
        one,
        components=tuple(proxy.get(each.name, each) for each in one.components),
        kubelets=other.kubelets,
        kubelet_reloads=other.kubelet_reloads,
    )


def _version_in(wanted: MasterConfig, key: str) -> str:
    found = wanted.etcd_cluster(key)
    return version_of(found) if found else ""


def _tag(image: str) -> str:
    """Without the number of the build that follows it: `3.5.26-0`."""
    version = parse(image.rpartition(":")[2])
    return str(version._replace(suffix="")) if version else ""


def _etcd(old: EtcdCluster, new: EtcdCluster, agreed: str) -> Iterator[Problem]:
    path = f"etcdClusters.{old.key}.version"
    before, after = version_of(old), version_of(new)
    was, now = _parsed(before), _parsed(after)
    step = f"cannot go from {before or 'an unknown version'} to {after or 'an unknown version'}"
    same_unknown = not after and old.pod.image == new.pod.image
    if was == now or same_unknown or (not before and may_run(new, agreed)):
        return
    if not after:
        message = f"{step}: {new.pod.image} may be older than {agreed or before}, and cannot read its data then"
        yield Problem(path=path, message=message, hint=f"keep the version, or name that of {new.pod.image} in the spec")
        return
    if old.pod.image == new.pod.image:
        message = f"{step}: the image, which decides what runs, stays {old.pod.image}"
        yield Problem(path=path, message=message, hint=f"change etcdClusters.{old.key}.image too, or remove it")
    if now.series < was.series and not (agreed and may_run(new, agreed)):
        message = f"{step}: its data is that of {agreed or before}, which {now.short} cannot read"
        yield Problem(path=path, message=message, hint="keep the version; an older one needs a new cluster")
    elif now.series > _next(was):
        first = _next(was)
        yield Problem(path=path, message=f"{step}: {NEXT}", hint=f"go to {first.short} first, and from there on")
    elif was.series < now.series == Version(3, 6) and was < SYNCED:
        reason = "members that joined as learners may be learners again under 3.6"
        message = f"{step}: {reason}; {SYNCED} is the first one that repairs this"
        yield Problem(path=path, message=message, hint=f"go to {SYNCED} or a later 3.5 first, and from there on")


def _kubernetes(before: MasterConfig, after: MasterConfig, oldest: str) -> Iterator[Problem]:
    was, now = _parsed(kubernetes_of(before)), _parsed(kubernetes_of(after))
    step = f"cannot go from {was} to {now}"
    if was == now:
        return
    images = {each.name: each.image for each in before.components if not each.program}
    same = [each.name for each in after.components if images.get(each.name) == each.image and not each.program]
    if same:
        message = f"{step}: the image, which decides what runs, stays the same for {', '.join(same)}"
        yield Problem(path="kubernetesVersion", message=message, hint="change the image too, or remove it")
    if now.series < was.series and not (oldest and _series(oldest) <= now.series):
        message = f"{step}: objects may be stored in forms that {now.short} cannot read"
        hint = "keep the version; an older one needs a new cluster"
        yield Problem(path="kubernetesVersion", message=message, hint=hint)
    elif now.series > _next(was):
        hint = f"go to {_next(was).short} first, and from there on"
        yield Problem(path="kubernetesVersion", message=f"{step}: {NEXT}", hint=hint)


def _next(version: Version) -> Version:
    return Version(version.major, version.minor + 1)


def _parsed(text: str) -> Version:
    return parse(text) or Version(0, 0)


def _series(text: str) -> Version:
    return _parsed(text).series


def _short(text: str) -> str:
    return _parsed(text).short
