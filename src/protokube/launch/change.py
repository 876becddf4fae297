"""Compare two configurations of a master's agent: what has to restart, and what a running cluster cannot change. Pure.

Both follow from the values that processes read, not from the fields that a user edits: whatever the reason for a
different flag is, its component restarts. Agents use this too, so it imports nothing that completes a configuration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from protokube.launch.machine import EtcdCluster, MasterConfig, Member
from protokube.manifests.component import ComponentPod, reads

KUBELET, KUBE_PROXY, API_SERVER = "kubelet", "kube-proxy", "kube-apiserver"
ETCD = "etcd "
ETCD_ORDER = ("main", "events")
ORDER = (API_SERVER, "kube-controller-manager", "kube-scheduler", KUBE_PROXY, "dns-controller")


def restarts(before: MasterConfig, after: MasterConfig) -> tuple[str, ...]:
    """What restarts on a master: etcd clusters, then components, then the kubelet.

    A kubelet of another version may restart every pod of its machine: it compares them by hashes that depend on it.
    Where the machine itself is replaced, everything on it starts anew.
    """
    everything = kubelet_changes(before, after) or needs_other_machine(before, after)
    keys = {each.key for each in (*before.etcd, *after.etcd)}
    etcd = [key for key in keys if everything or _etcd_start(before, key) != _etcd_start(after, key)]
    names = {each.name for each in (*before.components, *after.components)}
    components = [
        name for name in names if everything or _component_start(before, name) != _component_start(after, name)
    ]
    kubelet = [KUBELET] if _kubelet_start(before) != _kubelet_start(after) else []
    return in_order({*(f"{ETCD}{key}" for key in etcd), *components, *kubelet})


def in_order(names: Collection[str]) -> tuple[str, ...]:
    """Names of what restarts, in the order of `restarts`."""
    etcd = [each.removeprefix(ETCD) for each in names if each.startswith(ETCD)]
    components = [each for each in names if not each.startswith(ETCD) and each != KUBELET]
    return (
        *(f"{ETCD}{key}" for key in sorted(etcd, key=lambda key: _place(key, ETCD_ORDER))),
        *sorted(components, key=lambda name: _place(name, ORDER)),
        *([KUBELET] if KUBELET in names else []),
    )


def kubelet_changes(before: MasterConfig, after: MasterConfig) -> bool:
    """Whether running kubelets are replaced by those of another version."""
    versions = [{each.version for each in one.kubelets.values()} - {""} for one in (before, after)]
    return all(versions) and versions[0] != versions[1]


def needs_other_machine(before: MasterConfig, after: MasterConfig) -> bool:
    """Whether a machine that was made for one of them cannot run the other.

    In the local cloud, only hosts that were made with a container runtime can run a kubelet, and these have no other
    way to run pods. Elsewhere no configuration names this kubeconfig.
    """
    return bool(before.kubelet_kubeconfig) != bool(after.kubelet_kubeconfig)


def _place(name: str, order: tuple[str, ...]) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)


def _etcd_start(wanted: MasterConfig, key: str) -> Any:
    """What the members of an etcd cluster read when they start; None without it."""
    etcd = wanted.etcd_cluster(key)
    return etcd and (etcd.pod, {each.short: each.settings for each in etcd.members})


def _component_start(wanted: MasterConfig, name: str) -> Any:
    """What a component reads when it starts; None without it."""
    component = next((each for each in wanted.components if each.name == name), None)
    return component and (component, dict(_files_of(wanted, component)))


def _kubelet_start(wanted: MasterConfig) -> Any:
    return wanted.kubelets, wanted.kubelet_kubeconfig, wanted.kubelet_api


def _files_of(wanted: MasterConfig, component: ComponentPod) -> Iterator[tuple[str, Any]]:
    """The files that its flags name, or that its own files name, as the kubeconfig of kube-proxy."""
    places, texts = set(reads(component)), list(component.files.values())
    for path, content in _files(wanted):
        in_flags = path in places or any(path.startswith(f"{place.rstrip('/')}/") for place in places)
        if in_flags or any(path in text for text in texts):
            yield path, content


def _files(wanted: MasterConfig) -> Iterator[tuple[str, Any]]:
    """Every file that the agent writes for components, with what decides its content."""
    for path in set(chain(wanted.files, *wanted.group_files.values())):
        groups = {group: files[path].text for group, files in wanted.group_files.items() if path in files}
        yield path, (wanted.files[path].text if path in wanted.files else None, groups)
    yield from wanted.secret_files.items()
    for path, user in wanted.kubeconfigs.items():
        yield path, (user, wanted.api_port, wanted.kubelet_api if user == KUBE_PROXY else "")


@dataclass(frozen=True, slots=True)
class FixedValue:
    """A change that a running cluster cannot take over."""

    words: str
    fields: tuple[str, ...]
    """The fields of a spec that decide the value."""


MEMBER_FIELDS = {
    "name": "the name in etcd", "dns_name": "the DNS name", "peer_url": "the peer URL", "client_url": "the client URL",
    "zone": "the zone", "size": "the size of the disk in bytes", "group": "the instance group",
}  # fmt: skip


def fixed(before: MasterConfig, after: MasterConfig) -> tuple[str, ...]:
    """What this pair changes although a running cluster cannot, each in words; empty if an agent may take it over."""
    return tuple(each.words for each in fixed_values(before, after))


def fixed_values(before: MasterConfig, after: MasterConfig) -> Iterator[FixedValue]:
    yield from _step("the cluster name", before.cluster, after.cluster, "metadata.name")
    names = ("masterInternalName", "masterPublicName")
    yield from _step("the names of the API", ", ".join(before.api_names), ", ".join(after.api_names), *names)
    if before.components and after.components:  # Kubernetes that is added brings these values with it
        yield from _step("the port of the API", before.api_port, after.api_port, "kubeAPIServer.securePort")
        ranges = [
            ", ".join(f"{each.network} by /{each.node_mask}" for each in one.pod_ranges) for one in (before, after)
        ]
        yield from _step("the pod ranges", *ranges, "podCIDR", "kubeControllerManager")
    if before.components and after.components and not needs_other_machine(before, after):
        made = ["made by the agents" if one.pod_network else "not made by the agents" for one in (before, after)]
        yield from _step("the pod network", *made, "networking")
    yield from _etcd(before, after)
    if gone := sorted(set(before.key_pairs) - set(after.key_pairs)):
        yield FixedValue(f"the key pairs: {', '.join(gone)} removed", ("pki.keyPairs",))
    yield from _authorities(before, after)


def _step(what: str, before: object, after: object, *fields: str) -> Iterator[FixedValue]:
    if before != after:
        yield FixedValue(f"{what}: {before or 'none'} -> {after or 'none'}", fields)


def _etcd(before: MasterConfig, after: MasterConfig) -> Iterator[FixedValue]:
    keys = [", ".join(sorted(each.key for each in one.etcd)) for one in (before, after)]
    yield from _step("the set of etcd clusters", *keys, "etcdClusters")
    for old in before.etcd:
        if new := after.etcd_cluster(old.key):
            yield from _etcd_cluster(old, new)


def _etcd_cluster(old: EtcdCluster, new: EtcdCluster) -> Iterator[FixedValue]:
    name, field = f"etcd {old.key}", f"etcdClusters.{old.key}"
    yield from _step(f"the token of {name}", old.token, new.token, f"{field}.token")
    yield from _step(f"the data directory of {name}", old.pod.data_dir, new.pod.data_dir, f"{field}.dataDir")
    yield from _step(f"the client port of {name}", old.pod.client_port, new.pod.client_port, f"{field}.clientPort")
    yield from _step(f"the peer port of {name}", old.pod.peer_port, new.pod.peer_port, f"{field}.peerPort")
    shorts = [", ".join(sorted(each.short for each in one.members)) for one in (old, new)]
    yield from _step(f"the members of {name}", *shorts, f"{field}.members", "masters")
    for member in old.members:
        if other := new.member(member.short):
            yield from _member(f"{old.key}/{member.short}", f"{field}.members", member, other)


def _member(name: str, field: str, old: Member, new: Member) -> Iterator[FixedValue]:
    for attribute, what in MEMBER_FIELDS.items():
        ports = (f"{field.removesuffix('members')}{port}" for port in ("clientPort", "peerPort"))
        fields = (field, "masterInternalName", *ports) if attribute.endswith(("_name", "_url")) else (field,)
        yield from _step(f"{what} of member {name}", getattr(old, attribute), getattr(new, attribute), *fields)


def _authorities(before: MasterConfig, after: MasterConfig) -> Iterator[FixedValue]:
    names = [", ".join(one.authorities) for one in (before, after)]
    yield from _step("the set of certificate authorities", *names, "pki")
    for name in sorted(before.certificates.keys() & after.certificates.keys()):
        old, new = (one.certificates[name].authority for one in (before, after))
        yield from _step(f"the authority of certificate {name}", old, new, "pki")
