"""Users of the original keep a cluster and its groups in several files, and give us some of them."""

from __future__ import annotations

import pytest

from protokube.config.complete import complete
from protokube.errors import InvalidSpec
from protokube.spec.parse import read

KOPS = """
apiVersion: kops.k8s.io/v1alpha2
kind: Cluster
metadata: {name: web.example.com}
spec:
  cloudProvider: aws
  kubernetesVersion: 1.28.15
  etcdClusters:
  - name: main
    etcdMembers:
    - {name: a, instanceGroup: master-us-east-1a}
    - {name: b, instanceGroup: master-us-east-1b}
    - {name: c, instanceGroup: master-us-east-1c}
  subnets:
  - {name: us-east-1a, zone: us-east-1a, type: Public}
  - {name: us-east-1b, zone: us-east-1b, type: Public}
  - {name: us-east-1c, zone: us-east-1c, type: Public}
"""
ONE_MASTER = """
apiVersion: kops.k8s.io/v1alpha2
kind: InstanceGroup
metadata: {name: master-us-east-1a}
spec: {role: Master, minSize: 1, maxSize: 1, subnets: [us-east-1a], machineType: m5.large}
"""


def test_groups_that_only_the_etcd_members_name_are_made_in_the_zone_of_their_name() -> None:
    config = complete(read([("cluster.yaml", KOPS)]))

    zones = {name: group["zones"] for name, group in config.groups.items() if group["role"] == "Master"}
    assert zones == {f"master-us-east-1{letter}": [f"us-east-1{letter}"] for letter in "abc"}


def test_groups_in_files_that_were_not_given_are_stood_in_for_with_a_warning() -> None:
    config = complete(read([("cluster.yaml", KOPS), ("master.yaml", ONE_MASTER)]))

    assert config.groups["master-us-east-1a"]["machineType"] == "m5.large"
    assert config.groups["master-us-east-1b"]["zones"] == ["us-east-1b"]
    (warning,) = [each for each in config.warnings if each.path == "etcdClusters"]
    assert "there is no InstanceGroup document for master-us-east-1b, master-us-east-1c" in warning.message
    assert warning.hint == "pass all files of the cluster at once"


def test_in_a_spec_of_ours_a_group_that_is_not_there_is_a_mistake() -> None:
    ours = """
apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata: {name: web.example.com}
spec:
  cloud: aws
  zones: [us-east-1a]
  etcdClusters:
  - name: main
    members: [{name: a, instanceGroup: master-b}]
---
apiVersion: protokube.io/v1alpha1
kind: InstanceGroup
metadata: {name: master-a}
spec: {role: Master}
"""
    with pytest.raises(InvalidSpec, match="there is no group 'master-b'"):
        complete(read([("ours.yaml", ours)]))


@pytest.mark.parametrize(("least", "most", "masters"), [(1, 1, 1), (3, 12, 3), (0, 1, 1)])
def test_masters_are_those_that_always_run_or_may_run_if_none_always_does(least: int, most: int, masters: int) -> None:
    spec = f"""
apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata: {{name: web.example.com}}
spec:
  cloud: aws
  zones: [us-east-1a]
  etcdClusters: [{{name: main, members: [{{name: a, instanceGroup: masters}}]}}]
---
apiVersion: protokube.io/v1alpha1
kind: InstanceGroup
metadata: {{name: masters}}
spec: {{role: Master, minSize: {least}, maxSize: {most}}}
"""
    assert complete(read([("spec.yaml", spec)])).cluster["masters"] == masters


def test_a_group_of_ours_takes_no_name_of_the_users() -> None:
    spec = """
apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata: {name: web.example.com}
spec: {cloud: aws, zones: [us-east-1a]}
---
apiVersion: protokube.io/v1alpha1
kind: InstanceGroup
metadata: {name: nodes}
spec: {role: Bastion}
"""
    groups = complete(read([("spec.yaml", spec)])).groups
    assert groups["nodes"]["role"] == "Bastion"
    assert groups["nodes-2"]["role"] == "Node"
