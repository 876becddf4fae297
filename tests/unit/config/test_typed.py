"""The complete configuration as typed values: the proof that nothing was left to decide."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from protokube.config.complete import complete
from protokube.config.typed import build, typed
from protokube.spec.etcd import EtcdMember
from protokube.spec.parse import parse

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples").glob("*.yaml"))
GROUP = """
apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata: {name: dev.example.com}
spec: {cloud: aws, zones: [us-east-1a], masters: 1}
---
apiVersion: protokube.io/v1alpha1
kind: InstanceGroup
metadata: {name: mirrored}
spec:
  role: Node
  containerd: {registryMirrors: {docker.io: [https://mirror.example.com]}}
"""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_nothing_that_must_be_decided_is_left_open_in_any_example(example: Path) -> None:
    found = typed(complete(parse([(example.name, example.read_text())])))
    assert found.cluster.etcd_clusters["main"].members
    assert found.cluster.kube_api_server.anonymous_auth is False
    assert all(group.kubelet.max_pods for group in found.groups.values() if group.role != "Bastion")


def test_settings_are_reached_by_name_and_cannot_be_changed() -> None:
    found = typed(complete(parse([("minimal.yaml", EXAMPLES[0].with_name("minimal.yaml").read_text())])))
    assert found.name == "dev.example.com"
    assert found.cluster.kubelet.max_pods == 110
    assert found.cluster.etcd_clusters["main"].members["a"].zone == "us-east-1a"
    assert found.groups["nodes"].kubelet.cluster_dns == "100.64.0.10"
    with pytest.raises(FrozenInstanceError):
        found.cluster.masters = 5  # type: ignore[misc]  # the point of the test


def test_a_group_that_says_part_of_its_runtime_is_told_the_rest_by_the_cluster() -> None:
    found = typed(complete(parse([("group.yaml", GROUP)])))
    own, general = found.groups["mirrored"].containerd, found.cluster.containerd
    assert own is not None
    assert general is not None
    assert own.registry_mirrors == {"docker.io": ["https://mirror.example.com"]}
    assert own.version == general.version
    assert general.registry_mirrors is None


def test_a_value_left_undecided_is_named() -> None:
    with pytest.raises(LookupError, match=r"etcdClusters\.main\.members\.a\.zone was left undecided"):
        build(EtcdMember, {"instanceGroup": "master-a"}, "etcdClusters.main.members.a")
