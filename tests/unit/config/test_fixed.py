"""What of a spec a running cluster cannot take over: each refusal with its reason and what to do instead."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given

from builders.config import a_group, completed
from builders.examples import examples
from protokube.config.complete import Config, complete
from protokube.config.diff import Difference, Side, differences
from protokube.config.fixed import refusals
from protokube.config.fixed.rules import CHANGEABLE, RULES
from protokube.config.why import flatten
from protokube.errors import Problem
from protokube.spec.cluster import Cluster
from protokube.spec.fields import declared, element
from protokube.spec.group import InstanceGroup
from protokube.spec.parse import GROUPS
from protokube.spec.version import NEWEST, OLDEST
from unit.config.specs import Sample, specs

slow = examples(20, derandomize=True, suppress_health_check=list(HealthCheck))
FIRST = "us-east-1a"


def masters(*configs: Config) -> set[str]:
    return {name for each in configs for name, group in each.groups.items() if group["role"] == "Master"}


def refused(old: Config, new: Config) -> dict[str, Problem]:
    return {each.path: each for each in refusals(differences(old, new), masters(old, new))}


def test_every_field_of_a_cluster_can_change_or_is_fixed() -> None:
    known = declared(Cluster)
    changeable = [field for group in CHANGEABLE.values() for field in group]
    wholly_fixed = [path for rule in RULES for path in rule.paths if "." not in path]

    assert sorted(changeable + wholly_fixed) == sorted(known), "decide the new field: a rule, or CHANGEABLE"


def path_exists(schema: Any, names: list[str]) -> bool:
    """Whether the schema has a field at a path with `*` for names."""
    if not names:
        return True
    name, *rest = names
    rule = declared(schema).get(name) if hasattr(schema, "__dataclass_fields__") else None
    if rule is None:
        return not hasattr(schema, "__dataclass_fields__")  # a mapping without a schema
    if rule.keyed:
        return rest[:1] == ["*"] and path_exists(element(rule.type), rest[1:])
    return path_exists(rule.type, rest)


@pytest.mark.parametrize("path", [path for rule in RULES for path in rule.paths])
def test_every_rule_is_for_a_field_that_exists(path: str) -> None:
    names = path.split(".")
    schema, rest = (InstanceGroup, names[2:]) if names[0] == GROUPS else (Cluster, names)

    assert path == "metadata.name" or path_exists(schema, rest)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.paths[0])
def test_every_rule_says_why_and_what_to_do(rule: Any) -> None:
    assert len(rule.reason) > 10
    assert len(rule.instead) > 10


def etcd_clusters(**main: Any) -> dict[str, Any]:
    return {"etcdClusters": [{"name": "main", **main}, {"name": "events"}]}


def a_member(**fields: Any) -> dict[str, Any]:
    members = [{"name": name, "instanceGroup": f"master-us-east-1{name}"} for name in "abc"]
    return etcd_clusters(members=[members[0] | fields, *members[1:]])


ACCEPTED: dict[str, dict[str, Any]] = {
    "etcd quota": etcd_clusters(quotaBackendBytes=2**32),
    "etcd maintenance": etcd_clusters(maintenance={"rejoinRemoved": False}),
    "etcd metrics port": etcd_clusters(metricsPort=2399),
    "flag of the API server": {"kubeAPIServer": {"extraFlags": {"livez-grace-period": "30s"}}},
    "kubelet": {"kubelet": {"maxPods": 60}},
    "files": {"fileAssets": [{"name": "motd", "path": "/etc/motd", "content": "hello", "roles": ["Master"]}]},
    "names": {"additionalSans": ["api.example.org"]},
    "number of nodes": {"nodes": 7},
    "a zone for nodes": {"zones": [FIRST, "us-east-1b", "us-east-1c", "us-east-1d"]},
    "another key pair": {"pki": {"keyPairs": ["service-account", "next"]}},
    "encryption that stays off": {"encryptionConfig": False},
    "image of etcd": etcd_clusters(image="registry.example/etcd:3.6.8"),
    "registry": {"assets": {"containerRegistry": "registry.example"}},
    "version of etcd": etcd_clusters(version="3.6.9"),
}


@pytest.mark.parametrize("cluster", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_agents_can_deliver_is_not_refused(cluster: dict[str, Any]) -> None:
    assert refused(completed(), completed(**cluster)) == {}
    assert "pki" in cluster or refused(completed(**cluster), completed()) == {}


REFUSED: dict[str, dict[str, Any]] = {
    "metadata.name": {"name": "other.example.com"},
    "cloud": {"cloud": "gce"},
    "dnsZone": {"dnsZone": "example.com"},
    "masterInternalName": {"masterInternalName": "api.in.example.com"},
    "masterPublicName": {"masterPublicName": "k8s.example.com"},
    "podCIDR": {"podCIDR": "100.112.0.0/12"},
    "nonMasqueradeCIDR": {"nonMasqueradeCIDR": "10.0.0.0/9"},
    "kubeControllerManager.nodeCIDRMaskSize": {"kubeControllerManager": {"nodeCIDRMaskSize": 25}},
    "serviceClusterIPRange": {"serviceClusterIPRange": "100.64.0.0/16"},
    "clusterDNSDomain": {"clusterDNSDomain": "k8s.test"},
    "networking.plugin": {"networking": {"plugin": "cilium"}},
    "kubeAPIServer.securePort": {"kubeAPIServer": {"securePort": 6443}},
    "encryptionConfig": {"encryptionConfig": True},
    "masters": {"masters": 5},
    "instanceGroups.master-us-east-1b": {"masters": 1},
    "etcdClusters.events": {"etcdClusters": [{"name": "main"}]},
    "etcdClusters.main.token": etcd_clusters(token="t"),
    "etcdClusters.main.dataDir": etcd_clusters(dataDir="/data"),
    "etcdClusters.main.clientPort": etcd_clusters(clientPort=2379),
    "etcdClusters.main.peerPort": etcd_clusters(peerPort=2399),
    "etcdClusters.main.members.a.volumeSize": a_member(volumeSize=40),
    "etcdClusters.main.members.a.volumeType": a_member(volumeType="io2"),
    "etcdClusters.main.members.a.encryptedVolume": a_member(encryptedVolume=False),
    "pki.keyPairs": {"pki": {"keyPairs": ["other"]}},
    "keyStore": {"keyStore": "s3://elsewhere/pki"},
    "kubelet.cgroupDriver": {"kubelet": {"cgroupDriver": "cgroupfs"}},
    "masterKubelet.cpuManagerPolicy": {"masterKubelet": {"cpuManagerPolicy": "static"}},
    "containerd.address": {"containerd": {"address": "/run/other.sock"}},
}


@pytest.mark.parametrize(("path", "cluster"), REFUSED.items(), ids=REFUSED.keys())
def test_what_a_running_cluster_cannot_change_is_refused_with_a_hint(path: str, cluster: dict[str, Any]) -> None:
    found = refused(completed(), completed(**cluster))

    assert path in found
    assert "a running cluster" in found[path].message
    assert found[path].hint


def test_the_zone_of_a_member_and_of_its_group_cannot_change() -> None:
    def placed(zone: str) -> Config:
        return completed(a_group("master-a", "Master", zones=[zone]), zones=[FIRST, "us-east-1b"])

    found = refused(placed(FIRST), placed("us-east-1b"))
    members = [f"etcdClusters.{key}.members.a.zone" for key in ("main", "events")]
    assert sorted(found) == sorted([*members, f"{GROUPS}.master-a.zones", f"{GROUPS}.master-a.subnets"])
    assert found[members[0]].message.startswith("cannot change on a running cluster, us-east-1a -> us-east-1b: ")
    assert all(each.hint for each in found.values())


@pytest.mark.parametrize("minor", range(OLDEST.minor + 1, NEWEST.minor + 1))
def test_the_next_minor_version_of_kubernetes_changes_nothing_that_is_fixed(minor: int) -> None:
    old, new = (completed(kubernetesVersion=f"1.{each}.0") for each in (minor - 1, minor))

    assert refused(old, new) == {}


def test_a_member_that_is_added_is_one_refusal_not_one_for_each_of_its_fields() -> None:
    found = refused(completed(), completed(masters=5))
    members = [path for path in found if path.startswith("etcdClusters.main.members.")]

    assert members == ["etcdClusters.main.members.a-2", "etcdClusters.main.members.b-2"]
    assert found[members[0]].message.startswith(
        "cannot be added to a running cluster: the set of etcd members is fixed"
    )


def test_an_etcd_cluster_that_is_removed_is_one_refusal_with_all_of_its_members() -> None:
    found = refused(completed(), completed(etcdClusters=[{"name": "main"}]))

    assert [path for path in found if path.startswith("etcdClusters.")] == ["etcdClusters.events"]
    assert found["etcdClusters.events"].message.startswith("cannot be removed from a running cluster: ")


def test_groups_of_nodes_come_and_go_and_groups_of_masters_do_not() -> None:
    def group(role: str, **spec: Any) -> Config:
        more = [a_group(f"more-{index}", role, zones=[FIRST], **spec) for index in range(2)]
        first = a_group("master-a", "Master", zones=[FIRST])
        return completed(first, *more)

    first = completed(a_group("master-a", "Master", zones=[FIRST]))
    assert refused(first, group("Node")) == {}
    assert refused(group("Node"), first) == {}
    assert refused(group("Node", minSize=1), group("Node", minSize=3)) == {}
    found = refused(first, group("Master"))
    assert {"masters", f"{GROUPS}.more-0", f"{GROUPS}.more-1"} <= found.keys()
    grown = refused(group("Master", maxSize=1), group("Master", maxSize=2))
    assert sorted(grown) == [f"{GROUPS}.more-0.maxSize", f"{GROUPS}.more-1.maxSize"]


def test_a_name_with_dots_or_a_label_called_role_is_no_group_of_masters() -> None:
    added = Side("Master", "")
    absent = Side(None, "", present=False)
    label = Difference(f"{GROUPS}.g.nodeLabels.role", absent, added)
    dotted = Difference(f"{GROUPS}.masters.example.com.role", absent, added)

    assert refusals([label, dotted], {"g"}) == []
    assert [each.path for each in refusals([label, dotted], {"masters.example.com"})] == [
        f"{GROUPS}.masters.example.com"
    ]
    assert refusals([label, dotted], ()) == []


def test_all_refusals_are_reported_at_once_in_the_order_of_the_configuration() -> None:
    found = refused(completed(), completed(podCIDR="100.112.0.0/12", clusterDNSDomain="k8s.test", dnsZone="z.test"))

    assert [each for each in found if each in ("clusterDNSDomain", "podCIDR", "dnsZone")] == [
        "clusterDNSDomain", "podCIDR", "dnsZone",
    ]  # fmt: skip


@given(specs(), specs())
@slow
def test_every_refused_path_is_one_that_differs(one: Sample, other: Sample) -> None:
    old, new = complete(one.spec), complete(other.spec)
    left, right = flatten(old), flatten(new)

    for path in refused(old, new):
        under = {each for each in (*left, *right) if each == path or each.startswith(f"{path}.")}
        assert any(left.get(each, under) != right.get(each, under) for each in under), path
    assert refused(old, old) == {}
