"""For every field of a spec: whether it can change on a running cluster, and if not, why and what to do instead.

A path has `*` for one name, and stands for everything under it. A new field has to be listed: here as a rule, or under
`CHANGEABLE`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from protokube.spec.parse import GROUPS

Test = Callable[[Any, Any], bool]
"""Whether the step from one value to another is refused; None for a value that is not set."""


def any_change(before: Any, after: Any) -> bool:
    return bool(before != after)


def switched(before: Any, after: Any) -> bool:
    """Not set and false are the same."""
    return bool(before) != bool(after)


def replaced(before: Any, after: Any) -> bool:
    """A value that is no longer set, since the new version does not have it, is accepted."""
    return bool(before and after and before != after)


def removed(before: Any, after: Any) -> bool:
    """Additions to a list are accepted."""
    return bool(set(before or ()) - set(after or ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Fields that a running cluster keeps."""

    paths: tuple[str, ...]
    reason: str
    instead: str
    each: str = ""
    """For a rule on named items: a field that each of them has. The items cannot be added or removed; for their fields
    there are other rules."""
    refuses: Test = any_change


GROUP, ETCD, MEMBER = f"{GROUPS}.*", "etcdClusters.*", "etcdClusters.*.members.*"
"""Rules for groups are only for those of role Master."""
NEW_CLUSTER = "keep it, or create a new cluster"
KUBELETS = ("kubelet", "masterKubelet")
OF_MACHINE = (
    "cgroupDriver", "cgroupRoot", "containerRuntimeEndpoint", "hostnameOverride", "kubeconfigPath",
    "podManifestPath", "rootDir",
)  # fmt: skip
"""Settings of a kubelet by which it finds its machine's runtime, its pods and its Node again."""
STATEFUL = ("cpuManagerPolicy", "memoryManagerPolicy")
"""Settings of a kubelet with a state file: it does not start if the file is from another policy."""


def _of_kubelets(names: tuple[str, ...], *holders: str) -> tuple[str, ...]:
    return tuple(f"{holder}.{name}" for holder in holders for name in names)


RULES: tuple[Rule, ...] = (
    Rule(
        paths=("metadata.name",),
        reason="the names of its members, its certificates, its disks and its records contain it",
        instead="create a new cluster with the new name",
    ),
    Rule(
        paths=("cloud", "region", "project", "networkCIDR", "networkID"),
        reason="its machines and disks are there",
        instead="create a new cluster there",
    ),
    Rule(
        paths=("dnsZone", "topology.dns"),
        reason="the names of etcd members and of the API are in this zone",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=("masterInternalName", "masterPublicName"),
        reason="etcd members, kubelets and kubeconfigs use the old name",
        instead="keep it; a further name of the API goes into additionalSans",
    ),
    Rule(
        paths=(
            "podCIDR", "nonMasqueradeCIDR", "kubeControllerManager.clusterCIDR",
            "kubeControllerManager.nodeCIDRMaskSize", "kubeControllerManager.nodeCIDRMaskSizeIPv4",
            "kubeControllerManager.nodeCIDRMaskSizeIPv6",
        ),
        reason="nodes have parts of the old range, and their pods addresses of it",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=("serviceClusterIPRange", "kubeAPIServer.serviceClusterIPRange", "clusterDNS.serverIP"),
        reason="Services have addresses of the old range, and the address of a Service never changes",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=("clusterDNSDomain", "clusterDNS.domain"),
        reason="running pods, and the certificate of the API server, have names in the old domain",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=("networking",),
        reason="running pods are connected to the network that their node had when they started",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=("kubeAPIServer.securePort",),
        reason="kubelets and kubeconfigs connect to the old port",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=(
            "kubeAPIServer.etcdServers", "kubeAPIServer.etcdServersOverrides", "kubeAPIServer.storageBackend",
            "kubeAPIServer.extraFlags.etcd-prefix",
        ),
        reason="the objects of the cluster are in the old place",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=("encryptionConfig", "kubeAPIServer.encryptionProviderConfig"),
        reason="API servers restart one after the other, and those without the key cannot read encrypted Secrets",
        instead=NEW_CLUSTER,
        refuses=switched,
    ),
    Rule(
        paths=("masters",),
        reason="the set of etcd members is fixed when the cluster is created",
        instead="keep the number of masters, or create a new cluster",
    ),
    Rule(
        paths=(ETCD,),
        each="version",
        reason="etcd clusters are founded once, when the cluster is created",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=(MEMBER,),
        each="volumeSize",
        reason="the set of etcd members is fixed when the cluster is created",
        instead="keep the members, or create a new cluster",
    ),
    Rule(
        paths=(MEMBER,),
        reason="its disk exists, with its data, and the agents do not move or convert disks",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=(f"{ETCD}.token", f"{ETCD}.dataDir"),
        reason="the data on its disks was written with the old value",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=(f"{ETCD}.clientPort", f"{ETCD}.peerPort"),
        reason="members find each other at the old port, and while they restart there would be no quorum",
        instead="keep it; metricsPort can change",
    ),
    Rule(
        paths=("configBase", "keyStore", "secretStore"),
        reason="the keys and records of the cluster are there, and the agents do not move them",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=("pki.authorities.*",),
        each="commonName",
        reason="certificates of running components are signed by it, or their clients would have to trust it first",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=("pki.authorities.*.commonName", "pki.certificates.*.authority"),
        reason="all parts of the cluster trust the old authority; changing it in turns is not built yet",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=("pki.keyPairs",),
        reason="what was signed with a removed key, such as tokens of service accounts, becomes invalid at once",
        instead="keep the old names; further ones can be added",
        refuses=removed,
    ),
    Rule(
        paths=("containerRuntime", "containerd.address", *_of_kubelets(OF_MACHINE, *KUBELETS)),
        reason="machines get it when they are created, and their running pods depend on it",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=_of_kubelets(("containerRuntime",), *KUBELETS, f"{GROUP}.kubelet"),
        reason="machines get it when they are created, and their running pods depend on it",
        instead=NEW_CLUSTER,
        refuses=replaced,
    ),
    Rule(
        paths=_of_kubelets(STATEFUL, *KUBELETS),
        reason="a kubelet does not start with the state file of another policy",
        instead="keep it, or set it by group for groups of role Node",
    ),
    Rule(
        paths=(GROUP,),
        each="role",
        reason="the set of masters is fixed when the cluster is created, as are the etcd members they hold",
        instead="keep the groups of role Master; groups of role Node can be added and removed",
    ),
    Rule(
        paths=tuple(f"{GROUP}.{field}" for field in ("role", "minSize", "maxSize", "zones", "subnets")),
        reason="the disks of its etcd members are in its zones, one for each machine",
        instead=NEW_CLUSTER,
    ),
    Rule(
        paths=(f"{GROUP}.containerd.address", *_of_kubelets((*OF_MACHINE, *STATEFUL), f"{GROUP}.kubelet")),
        reason="machines get it when they are created, and their running pods depend on it",
        instead=NEW_CLUSTER,
    ),
)  # fmt: skip

CHANGEABLE: dict[str, tuple[str, ...]] = {
    "the agents restart what reads it, one master after the other": (
        "etcdClusters", "kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubeProxy", "kubelet",
        "masterKubelet", "dnsController", "authorization", "serviceAccountIssuerDiscovery", "cloudControllerManager",
        "fileAssets",
    ),
    "the agents upgrade it in stages, one master after the other; which steps are possible: `launch.versions`": (
        "kubernetesVersion",
    ),
    "the agents carry it out without a restart": ("additionalSans", "pki", "addons", "clusterDNS"),
    "used when a machine, a disk or a network is created: what exists stays as it is": (
        "zones", "nodes", "subnets", "topology", "api", "additionalNetworkCIDRs", "sshAccess", "kubernetesApiAccess",
        "nodePortAccess", "sshKeyName", "sshPublicKeys", "egressProxy", "disableSubnetTags", "cloudConfig",
        "containerd", "docker", "assets", "iam", "additionalPolicies", "externalPolicies", "cloudLabels",
        "updatePolicy", "rollingUpdate", "isolateMasters", "useHostCertificates", "sysctlParameters", "ntp",
        "packages", "hooks",
    ),
}  # fmt: skip
"""Top-level fields that can change, except where a rule refuses a part of them; by what happens then."""
