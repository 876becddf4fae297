"""The configuration of one master's agent, as it gets it at boot.

Made once from the complete configuration (`derive`), and handed over as JSON with the launch data: an agent that
starts must not wait for a store, and takes no configuration decision itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from ipaddress import ip_network
from typing import Any

from protokube.config.podranges import PodRange
from protokube.errors import InvalidRequest
from protokube.manifests.certificate import CertificateWanted
from protokube.manifests.component import ComponentPod, Flags
from protokube.manifests.etcd import EtcdPod

FIRST, VERSION = 1, 2
"""Of the wire format; greater after a change that earlier versions of protokube would misread or refuse.

2 has the versions of programs. Launch data without any are still written as 1, which earlier versions read.
"""

API_NAMES = ("api_internal_name", "api_public_name")
"""Fields that the wire format holds as one list, `api_names`."""
WIRE_ONLY = ("version", "api_names")
VERSIONS = ("version", "kubernetes")
"""Fields with versions of programs, of a master, an etcd cluster and a kubelet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of an etcd cluster; the set of members is fixed."""

    short: str
    """The name in volume tags: `a`."""
    name: str
    """The name in etcd: `etcd-a`."""
    dns_name: str
    peer_url: str
    client_url: str
    zone: str
    size: int
    """Of its volume, in bytes."""
    group: str
    """The instance group that may hold it."""
    settings: dict[str, Any]
    """etcd's configuration file, as the configuration renders it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdCluster:
    """One etcd cluster, `main` or `events`."""

    key: str
    pod: EtcdPod
    members: tuple[Member, ...]
    token: str
    replace_lost_volumes: bool
    compact: bool = False
    """Whether old revisions may be deleted when it is full."""
    rejoin_removed_after: float | None = 300.0
    """Seconds after which a member that was removed by hand rejoins; None for never."""
    version: str = ""
    """Of its programs; empty in launch data of earlier versions of protokube."""

    def member(self, short: str) -> Member | None:
        return next((each for each in self.members if each.short == short), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """A file that the user configured."""

    text: str
    """Base64, since the content may be binary."""
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletConfig:
    """The kubelet of one instance group."""

    flags: Flags
    files: dict[str, str]
    """Content of its configuration files by path."""
    version: str = ""
    """Of its program; empty in launch data of earlier versions of protokube, whose machines have only one."""

    @property
    def kubeconfig(self) -> str:
        """The path of the kubeconfig by which it reaches the API."""
        return str(self.flags["kubeconfig"])


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterConfig:
    """The complete configuration of a master's agent."""

    cluster: str
    api_internal_name: str
    """The DNS name of the API for the cluster's own machines."""
    api_public_name: str
    """The DNS name of the API for users; may equal the internal one."""
    etcd: tuple[EtcdCluster, ...]
    certificates: dict[str, CertificateWanted]
    """By name, as `pki.certificates` of the configuration."""
    certificate_lifetime: float = 365 * 86400.0
    """Seconds for which each is issued."""
    key_pairs: tuple[str, ...] = ()
    """Keys that sign something else than certificates, by their names in the store."""
    components: tuple[ComponentPod, ...] = ()
    """What runs on every master in addition to etcd; empty without Kubernetes."""
    kubeconfigs: dict[str, str] = field(default_factory=dict)
    """By path: the certificate of its user. They point to the API server of this machine; that of kube-proxy points to
    the same server as the kubelet's."""
    secret_files: dict[str, str] = field(default_factory=dict)
    """By path: the secret in the store that is its content."""
    files: dict[str, FileText] = field(default_factory=dict)
    """By path: the user's own files."""
    group_files: dict[str, dict[str, FileText]] = field(default_factory=dict)
    """By instance group: files of its masters only; each overrides the file of all masters at the same path."""
    api_port: int = 443
    kubelet_kubeconfig: str = ""
    """Path of the kubelet's kubeconfig on a master; empty where no kubelet runs that needs one."""
    kubelet_api: str = ""
    """The API server URL for that kubelet: the machine's own proxy, which fails over; or its own server."""
    kubelet_reloads: bool = False
    """Whether that kubelet reloads a renewed serving certificate by itself."""
    pod_network: bool = False
    """Whether the agents make the pod network: nodes share a subnet, and nothing else routes between their pods."""
    pod_ranges: tuple[PodRange, ...] = ()
    """The pod addresses of the cluster and the size of each node's part, by IP family. No others are routed."""
    node_labels: dict[str, dict[str, str]] = field(default_factory=dict)
    """By instance group: what its Nodes are labelled with."""
    node_taints: dict[str, list[str]] = field(default_factory=dict)
    """By instance group: `key=value:Effect`."""
    addons: str = ""
    """The digest of the add-ons in the store, as of the launch. Used only where the store does not name the current
    ones."""
    kubelets: dict[str, KubeletConfig] = field(default_factory=dict)
    """By instance group of masters; empty where no kubelet is configured by the agent."""
    revision: int = 0
    """Number of the revision in the store that this is; 0 for launch data without one."""
    kubernetes: str = ""
    """The version of the control plane; empty without one, and in launch data of earlier versions of protokube."""

    @property
    def api_names(self) -> tuple[str, ...]:
        """Both names, the internal one first; a single one if they are equal."""
        return tuple(dict.fromkeys((self.api_internal_name, self.api_public_name)))

    @property
    def authorities(self) -> tuple[str, ...]:
        """The authorities that sign the certificates, sorted."""
        return tuple(sorted({each.authority for each in self.certificates.values()}))

    def etcd_cluster(self, key: str) -> EtcdCluster | None:
        return next((each for each in self.etcd if each.key == key), None)

    def files_of(self, group: str) -> dict[str, FileText]:
        """The user's files of the masters of one instance group."""
        return self.files | self.group_files.get(group, {})


def to_tree(wanted: MasterConfig) -> dict[str, Any]:
    """The wire format has only `api_names`, the internal one first: earlier versions refuse fields they do not know.

    For the same reason, and since revisions have digests of it, versions that are not known are left out.
    """
    ranges = [{"network": str(each.network), "node_mask": each.node_mask} for each in wanted.pod_ranges]
    certificates = {name: each.to_tree() for name, each in wanted.certificates.items()}
    tree = asdict(wanted) | {"api_names": wanted.api_names, "pod_ranges": ranges}
    tree["certificates"] = certificates
    wire = FIRST
    for each in (tree, *tree["etcd"], *tree["kubelets"].values()):
        for name in VERSIONS:
            if each.get(name):
                wire = VERSION
            else:
                each.pop(name, None)
    tree["version"] = wire
    return {name: value for name, value in tree.items() if name not in API_NAMES}


def from_tree(tree: dict[str, Any]) -> MasterConfig:
    """Decode it; InvalidRequest for a file of another version of protokube."""
    try:
        _check_version(tree.get("version", 1))
        etcd = tuple(
            EtcdCluster(
                **each
                | {"pod": EtcdPod(**each["pod"]), "members": tuple(Member(**member) for member in each["members"])}
            )
            for each in tree["etcd"]
        )
        lists = ("program", "also_reads", "also_writes")
        components = tuple(
            ComponentPod(**each | {name: tuple(each[name]) for name in lists}) for each in tree.get("components", ())
        )
        files = _files(tree.get("files", {}))
        group_files = {group: _files(paths) for group, paths in tree.get("group_files", {}).items()}
        fields = {"etcd": etcd, "components": components, "files": files, **_api_names(*tree["api_names"])}
        fields["group_files"] = group_files
        fields["certificates"] = {name: CertificateWanted.read(each) for name, each in tree["certificates"].items()}
        fields["key_pairs"] = tuple(tree.get("key_pairs", ()))
        fields["pod_ranges"] = tuple(_pod_range(**each) for each in tree.get("pod_ranges", ()))
        fields["kubelets"] = {group: KubeletConfig(**each) for group, each in tree.get("kubelets", {}).items()}
        return MasterConfig(**{name: value for name, value in (tree | fields).items() if name not in WIRE_ONLY})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidRequest(
            f"this is not the configuration of a master: {error}", hint="it is made by `protokube up`"
        ) from error


def _check_version(version: int) -> None:
    if version > VERSION:
        raise InvalidRequest(
            "this configuration of a master was made by a newer version of protokube",
            saw=f"version {version} of its format; this protokube reads up to {VERSION}",
            hint="install the newer version on this machine",
        )


def _api_names(internal: str, public: str = "") -> dict[str, str]:
    return dict(zip(API_NAMES, (internal, public or internal), strict=True))


def _pod_range(network: str, node_mask: int) -> PodRange:
    return PodRange(network=ip_network(network), node_mask=node_mask)


def _files(tree: dict[str, Any]) -> dict[str, FileText]:
    return {path: FileText(**fields) for path, fields in tree.items()}
