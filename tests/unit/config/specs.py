"""Random specs that are valid by construction, drawn from the schema itself.

Any field may be set, with any value of its type that its check accepts. Where fields depend on each other (addresses,
names, ports, counts, images, admission plugins, taints) values are chosen so that they fit together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from typing import Any, get_origin

from hypothesis import strategies as st

from builders.config import FILE, ZONES, spec_text, table
from protokube.spec.cluster import Cluster
from protokube.spec.components.apiserver import KubeAPIServer
from protokube.spec.components.controller_manager import KubeControllerManager
from protokube.spec.components.kubelet import Kubelet
from protokube.spec.components.proxy import KubeProxy
from protokube.spec.components.scheduler import KubeScheduler
from protokube.spec.decode import Tree
from protokube.spec.etcd import EtcdCluster, EtcdMaintenance, EtcdMember
from protokube.spec.fields import Declared, declared, duration, element, quantity
from protokube.spec.group import InstanceGroup
from protokube.spec.machines import ClusterDNS, DNSController
from protokube.spec.network import PLUGINS as PLUGIN_NAMES
from protokube.spec.network import Networking
from protokube.spec.parse import GROUPS, Spec, parse

VERSIONS = ("1.20", "1.28", "1.32", "1.34", "1.36", "1.37")
"""Versions whose own tables tell us what they take."""
MASTERS = tuple(f"master-{zone}" for zone in ZONES["aws"])


@dataclass(frozen=True, slots=True)
class Component:
    """Which binary carries out a part of the spec, and whether it reads a file of ours."""

    schema: type
    binary: str
    has_file: bool


COMPONENTS = {
    "kubeAPIServer": Component(KubeAPIServer, "kube-apiserver", has_file=False),
    "kubeControllerManager": Component(KubeControllerManager, "kube-controller-manager", has_file=False),
    "kubeScheduler": Component(KubeScheduler, "kube-scheduler", has_file=True),
    "kubeProxy": Component(KubeProxy, "kube-proxy", has_file=True),
    "kubelet": Component(Kubelet, "kubelet", has_file=True),
    "masterKubelet": Component(Kubelet, "kubelet", has_file=True),
}

WORDS = st.sampled_from(["", "0", "no", "null", "1.30", "007", "1e-05", "a b", "ünïcode", "two\nlines\n", "x: y # z"])
KEYS = st.sampled_from(["a", "b-c", "example.com/d", "yes", "1"])
DURATIONS = st.sampled_from(["0", "0s", "30s", "5m0s", "1h30m", "250ms"])
QUANTITIES = st.sampled_from(["0", "1", "100m", "1.5", "2k", "512Mi"])
NAMES = st.sampled_from(["api.example.org", "a", "in.side.test"])
RANGES = st.lists(st.sampled_from(["0.0.0.0/0", "10.1.0.0/16", "198.51.100.7/32", "pl-1"]), max_size=2)
TAINTS = st.lists(st.sampled_from(["a=b:NoSchedule", "c:NoExecute", "d=:PreferNoSchedule"]), max_size=2, unique=True)
LABELS = st.dictionaries(KEYS, st.sampled_from(["", "0", "no", "null", "1.30", "1e-05", "a_b"]), max_size=2)
PLUGINS = st.lists(st.sampled_from(["NodeRestriction", "AlwaysPullImages", "EventRateLimit"]), max_size=2, unique=True)
GATES = st.dictionaries(st.sampled_from(["GateA", "GateB"]), st.sampled_from(["true", "false"]), max_size=2)
ROLES = st.lists(st.sampled_from(["Master", "Node", "Bastion"]), max_size=2, unique=True)
MODES = st.sampled_from(["", "0440", "600", "0777"])
FILE_ASSET = st.fixed_dictionaries({"content": WORDS}, optional={"roles": ROLES, "mode": MODES})
FILES = st.dictionaries(st.sampled_from(["f", "g"]), FILE_ASSET)
HOOKS = st.lists(
    st.fixed_dictionaries({"manifest": st.just("Type=oneshot")}, optional={"enabled": st.booleans(), "roles": ROLES}),
    max_size=2,
)

FORMS: dict[str, dict[str, Any]] = {
    "thresholds": {"": {}, "memory.available<5%": {"memory.available": "5%"}, "a<1Mi,b<2%": {"a": "1Mi", "b": "2%"}},
    "pairs": {"": {}, "memory.available=1m": {"memory.available": "1m"}, "a=0,b=2m": {"a": "0", "b": "2m"}},
    "words": {"": [], "pods": ["pods"], "a,b": ["a", "b"], "100.64.0.2": ["100.64.0.2"]},
    "number": {"0": 0, "100": 100, "0.5": 0.5, "100m": 0.1},
}
"""Text of a spec, and what a file holds instead."""

EXTRA: dict[type, st.SearchStrategy[Tree]] = {
    KubeAPIServer: st.just({"livez-grace-period": "30s"}),
    KubeControllerManager: st.just({"concurrent-gc-syncs": 0}),
    Kubelet: st.just({"log-flush-frequency": "10s"}),
    EtcdCluster: st.just({"snapshot-count": 50000, "grpc-keepalive-interval": "2h", "enable-pprof": False}),
}
CHOSEN: dict[tuple[type, str], st.SearchStrategy[Any]] = {
    (EtcdMaintenance, "rejoinRemovedAfter"): st.sampled_from(["1s", "5m", "24h"]),
    (Cluster, "masterPublicName"): NAMES,
    (Cluster, "masterInternalName"): NAMES,
    (Cluster, "clusterDNSDomain"): NAMES,
    (Cluster, "additionalSans"): st.lists(NAMES | st.sampled_from(["*.example.org", "192.0.2.1", "::1"]), max_size=2),
    (Cluster, "sshAccess"): RANGES,
    (Cluster, "kubernetesApiAccess"): RANGES,
    (Cluster, "nodePortAccess"): RANGES,
    (Cluster, "fileAssets"): FILES,
    (Cluster, "hooks"): HOOKS,
    (Cluster, "pki"): st.fixed_dictionaries({"keyPairs": st.lists(WORDS, max_size=2)}),
    (Networking, "plugin"): st.sampled_from([each for each in PLUGIN_NAMES if each != "amazonvpc"]),
    (KubeAPIServer, "authorizationMode"): st.sampled_from(["Node,RBAC", "AlwaysAllow"]),
    (KubeAPIServer, "securePort"): st.sampled_from([443, 6443, 8443]),
    (KubeAPIServer, "serviceNodePortRange"): st.sampled_from(["30000-32767", "40000-40000"]),
    (KubeAPIServer, "enableAdmissionPlugins"): PLUGINS,
    (KubeAPIServer, "appendAdmissionPlugins"): PLUGINS,
    (KubeAPIServer, "disableAdmissionPlugins"): st.lists(st.just("LimitRanger"), max_size=1),
    (Kubelet, "taints"): TAINTS,
    (Kubelet, "nodeLabels"): LABELS,
    (DNSController, "provider"): st.just("aws-route53"),
    (DNSController, "zones"): st.lists(st.sampled_from(["example.com", "*/Z1", "*"]), max_size=2),
    (EtcdCluster, "version"): st.sampled_from(["3.4.13", "3.5.9", "3.5.21", "3.6.8"]),
    (EtcdCluster, "env"): st.lists(st.fixed_dictionaries({"name": st.just("GOGC"), "value": WORDS}), max_size=1),
    (InstanceGroup, "taints"): TAINTS,
    (InstanceGroup, "nodeLabels"): LABELS,
    (InstanceGroup, "fileAssets"): FILES,
    (InstanceGroup, "hooks"): HOOKS,
}
MASKS = ("nodeCIDRMaskSize", "nodeCIDRMaskSizeIPv4", "nodeCIDRMaskSizeIPv6")
IMAGED = (KubeAPIServer, KubeControllerManager, KubeScheduler, KubeProxy)
APART = {
    Cluster: {
        *("cloud", "zones", "masters", "nodes", "kubernetesVersion", "containerRuntime", "subnets", "etcdClusters"),
        *("networkCIDR", "additionalNetworkCIDRs", "nonMasqueradeCIDR", "podCIDR", "serviceClusterIPRange"),
        *COMPONENTS,
    },
    ClusterDNS: {"domain", "serverIP"},
    DNSController: {"server"},  # makes it rfc2136, which needs zones
    KubeAPIServer: {"serviceClusterIPRange", "authenticationConfiguration", "authenticationConfigFile"},
    KubeControllerManager: {"serviceClusterIPRange", "clusterCIDR", *MASKS},
    Kubelet: {"clusterDNS", "clusterDomain"},
    EtcdCluster: {"members", "clientPort", "peerPort", "metricsPort", "heartbeatInterval", "leaderElectionTimeout"},
    EtcdMember: {"instanceGroup", "zone"},
    InstanceGroup: {"role", "minSize", "maxSize", "zones", "subnets", "kubelet"},
}
"""Fields whose values follow from each other; they are set together, below."""
ADDRESSES: list[Tree] = [
    {},
    {"nonMasqueradeCIDR": "10.0.0.0/9", "clusterDNS": {"serverIP": "10.0.0.53"}},
    {"networkCIDR": "10.200.0.0/16", "additionalNetworkCIDRs": []},
    {"podCIDR": "100.80.0.0/12", "serviceClusterIPRange": "100.64.0.0/16", "kubelet": {"clusterDNS": "100.64.0.2"}},
    {"kubeControllerManager": {"clusterCIDR": "100.112.0.0/12"}},
    {"kubeAPIServer": {"serviceClusterIPRange": "100.65.0.0/20"}},
]


def takes(component: Component, rule: Declared, version: str) -> str:
    """`file` or `flag`, the form in which this version takes a setting; nothing if it does not."""
    if rule.file and component.has_file and _within(rule, version):
        return "file"
    return "flag" if rule.flag in table(version)[component.binary] else ""


def _within(rule: Declared, version: str) -> bool:
    minor = int(version[2:])
    return int(rule.since[2:] or 0) <= minor and (not rule.until or minor < int(rule.until[2:]))


def anything() -> st.SearchStrategy[Any]:
    """A part that no schema describes."""
    leaf = WORDS | st.booleans() | st.sampled_from([0, -1, 7, 0.5, 1e-05])
    return st.recursive(leaf, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner), max_leaves=4)


def of_type(kind: Any, version: str) -> st.SearchStrategy[Any]:
    if is_dataclass(kind):
        return record(kind, version)  # type: ignore[arg-type]  # a schema class
    if get_origin(kind) is list:
        return st.lists(of_type(element(kind), version), max_size=2)
    if get_origin(kind) is dict:
        return st.dictionaries(KEYS, of_type(element(kind), version), max_size=2)
    numbers: st.SearchStrategy[Any] = st.sampled_from([0, 1, 7, 30000])
    scalars = {str: WORDS, bool: st.booleans(), int: numbers, float: st.sampled_from([0.0, 0.5, 1e-05, 3.0])}
    return scalars.get(kind, anything())


def value_of(schema: type, rule: Declared, version: str) -> st.SearchStrategy[Any]:
    """Any value of the field's type that its check accepts."""
    if (schema, rule.name) in CHOSEN:
        return CHOSEN[schema, rule.name]
    if rule.name in ("extraFlags", "featureGates"):
        return EXTRA.get(schema, st.just({})) if rule.name == "extraFlags" else GATES
    if rule.name == "image" and schema in IMAGED:
        return st.sampled_from(["mine/it", f"registry.example.com:5000/it:v{version}.1"])
    if rule.form in FORMS:
        return st.sampled_from(sorted(FORMS[rule.form]))
    if choices := getattr(rule.check, "choices", ()):
        return st.sampled_from(choices)
    if bounds := getattr(rule.check, "bounds", ()):
        least, most = bounds
        return st.integers(least, min(least + 100, most or least + 100))
    if rule.check in (duration, quantity):
        return DURATIONS if rule.check is duration else QUANTITIES
    return of_type(rule.type, version)


def record(schema: type, version: str, component: Component | None = None, most: int = 5) -> st.SearchStrategy[Tree]:
    """A few fields of a schema class; of a component's, only those that this version takes."""
    component = component or next((each for each in COMPONENTS.values() if each.schema is schema), None)
    known = [
        rule
        for name, rule in declared(schema).items()
        if name not in APART.get(schema, ())
        and (component is None or not (rule.flag or rule.file) or takes(component, rule, version))
    ]

    def draw_fields(rules: list[Declared]) -> st.SearchStrategy[Tree]:
        return st.fixed_dictionaries({rule.name: _field(schema, rule, version, component) for rule in rules})

    return st.lists(st.sampled_from(known), max_size=most, unique_by=lambda rule: rule.name).flatmap(draw_fields)


def _field(schema: type, rule: Declared, version: str, component: Component | None) -> st.SearchStrategy[Any]:
    if component and is_dataclass(rule.type):
        return record(rule.type, version, component)  # type: ignore[arg-type]  # a schema class
    return value_of(schema, rule, version)


@st.composite
def etcd_clusters(draw: st.DrawFn, version: str) -> Tree:
    names = draw(st.sampled_from([["main"], ["main", "events"], ["third", "events", "main"]]))
    found: Tree = {}
    for index, name in enumerate(names):
        tree = draw(record(EtcdCluster, version))
        tree |= draw(st.sampled_from([{}, {"heartbeatInterval": "200ms", "leaderElectionTimeout": "2s"}]))
        ports = {"clientPort": 5001 + index, "peerPort": 5101 + index, "metricsPort": 5201 + index}
        tree |= {port: number for port, number in ports.items() if draw(st.booleans())}
        if draw(st.booleans()):
            tree["members"] = {short: draw(record(EtcdMember, version)) for short in "abc"}
        found[name] = tree
    return found


@st.composite
def node_groups(draw: st.DrawFn, version: str) -> dict[str, Tree]:
    found: dict[str, Tree] = {}
    for name in draw(st.lists(st.sampled_from(["pool", "spot"]), max_size=2, unique=True)):
        tree: Tree = {"role": "Node", **draw(record(InstanceGroup, version))}
        if draw(st.booleans()):
            least = draw(st.integers(0, 3))
            tree |= {"minSize": least, "maxSize": least + draw(st.integers(0, 2))}
        if draw(st.booleans()):
            tree["zones"] = draw(st.lists(st.sampled_from(ZONES["aws"]), min_size=1, unique=True))
        tree["kubelet"] = draw(record(Kubelet, version))
        found[name] = tree
    return found


@dataclass(frozen=True, slots=True)
class Sample:
    """A spec as a tree by wire names, things with a name as mappings, and the version it is for."""

    version: str
    cluster: Tree
    groups: dict[str, Tree]

    @property
    def text(self) -> str:
        groups = [(name, as_written(InstanceGroup, tree)) for name, tree in self.groups.items()]
        return spec_text(as_written(Cluster, self.cluster), groups)

    @property
    def spec(self) -> Spec:
        return parse([(FILE, self.text)])


def as_written(schema: type, tree: Tree) -> Tree:
    """Things with a name as the list a user writes."""
    found: Tree = {}
    for name, value in tree.items():
        rule = declared(schema)[name]
        if rule.keyed:
            inner = element(rule.type)
            found[name] = [{"name": key, **as_written(inner, each)} for key, each in value.items()]
        else:
            found[name] = as_written(rule.type, value) if is_dataclass(rule.type) else value  # type: ignore[arg-type]
    return found


def node_masks(version: str) -> st.SearchStrategy[Tree]:
    """Nothing, or masks of the nodes' pod ranges that go together."""
    unused = {"allocateNodeCIDRs": False, **dict.fromkeys(MASKS, 25)}
    ways = [st.fixed_dictionaries({MASKS[0]: st.integers(24, 26)}), st.just(unused)]
    if int(version[2:]) >= 23:
        ways.append(st.fixed_dictionaries({MASKS[1]: st.integers(24, 26)}))
    return st.just({}) | st.fixed_dictionaries({"kubeControllerManager": st.one_of(ways)})


@st.composite
def specs(draw: st.DrawFn) -> Sample:
    """A cluster on AWS in three zones that says anything about anything."""
    version = draw(st.sampled_from(VERSIONS))
    cluster: Tree = {"cloud": "aws", "zones": ZONES["aws"], "kubernetesVersion": f"{version}.1"}
    cluster |= draw(record(Cluster, version, most=8))
    for name in draw(st.lists(st.sampled_from(sorted(COMPONENTS)), max_size=3, unique=True)):
        cluster[name] = draw(record(COMPONENTS[name].schema, version))
    for name, value in [*draw(st.sampled_from(ADDRESSES)).items(), *draw(node_masks(version)).items()]:
        cluster[name] = {**cluster.get(name, {}), **value} if isinstance(value, dict) else value
    if draw(st.booleans()):
        cluster["etcdClusters"] = draw(etcd_clusters(version))
    groups = draw(node_groups(version))
    if not groups and draw(st.booleans()):
        cluster["nodes"] = draw(st.integers(1, 4))
    return Sample(version, cluster, groups)


def sample_values(sample: Sample) -> Iterator[tuple[str, Any]]:
    """Every value that was written, by path; lists and empty mappings are values."""
    yield from _walk("", sample.cluster)
    for name, tree in sample.groups.items():
        yield from _walk(f"{GROUPS}.{name}", tree)


def _walk(path: str, tree: Tree) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        here = f"{path}.{name}" if path else name
        if isinstance(value, dict) and value:
            yield from _walk(here, value)
        else:
            yield here, value


ODD = WORDS | st.sampled_from(["10.0.0.0/8", "10.0.0.1/8", "fd00::/64", "us-east-1a", "nodes", "a=b:NoSchedule", "-1s"])


def any_of_type(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of a type, whether it makes sense or not; a list may hold nothing, and free-form parts anything."""
    if is_dataclass(kind):
        return st.deferred(lambda: any_record(kind))  # type: ignore[arg-type]  # a schema class
    if get_origin(kind) is list:
        return st.lists(any_of_type(element(kind)), max_size=3)
    if get_origin(kind) is dict:
        return st.dictionaries(KEYS, any_of_type(element(kind)), max_size=2)
    numbers: st.SearchStrategy[Any] = st.sampled_from([-1, 0, 1, 2, 3, 24, 443, 4001, 70000])
    scalars = {str: ODD, bool: st.booleans(), int: numbers, float: st.sampled_from([-1.0, 0.0, 1e-05])}
    return scalars.get(kind, anything() | st.none())


def any_record(schema: type, most: int = 4) -> st.SearchStrategy[Tree]:
    """A few fields of a schema class, with values of their types."""

    def draw_fields(rules: list[Declared]) -> st.SearchStrategy[Tree]:
        return st.fixed_dictionaries({rule.name: _any_field(rule) for rule in rules})

    rules = st.sampled_from(list(declared(schema).values()))
    return st.lists(rules, max_size=most, unique_by=lambda rule: rule.name).flatmap(draw_fields)


def _any_field(rule: Declared) -> st.SearchStrategy[Any]:
    if rule.keyed:
        names = st.sampled_from(["main", "events", "a", "us-east-1a", "B C"])
        return st.dictionaries(names, any_record(element(rule.type)), max_size=2)
    if choices := getattr(rule.check, "choices", ()):
        return st.sampled_from(choices)
    if rule.check in (duration, quantity):
        return st.sampled_from(["0", "-1s", "1h30m"]) if rule.check is duration else QUANTITIES
    return any_of_type(rule.type)


@st.composite
def any_specs(draw: st.DrawFn) -> Sample:
    """Whatever has the right types."""
    cluster: Tree = {"cloud": draw(st.sampled_from(["aws", "gce", "local", "metal"]))}
    cluster |= {"zones": ZONES[cluster["cloud"]]} if cluster["cloud"] in ZONES else {}
    cluster |= draw(any_record(Cluster, most=6))
    cluster["kubernetesVersion"] = draw(st.sampled_from(["1.20", "1.24", "1.29", "1.36", "1.40", "", "x"]))
    roles = st.sampled_from(["Master", "Node", "Bastion", "APIServer"])
    names = draw(st.sampled_from(["", "n", "nm"]))
    groups = {name: {"role": draw(roles), **draw(any_record(InstanceGroup))} for name in names}
    return Sample("", cluster, groups)
