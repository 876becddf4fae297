"""Addresses: the machines' network, its subnets, and the split of the range inside the cluster."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from builders.config import ZONES, completed, problems
from protokube.config.network import network, pods_of, region_of, services_of, zones_in_names


def test_the_usual_range_is_split_as_in_the_original() -> None:
    cluster = completed().cluster

    assert cluster["nonMasqueradeCIDR"] == "100.64.0.0/10"
    assert cluster["podCIDR"] == "100.96.0.0/11"
    assert cluster["serviceClusterIPRange"] == "100.64.0.0/13"
    assert cluster["clusterDNS"]["serverIP"] == "100.64.0.10"


@pytest.mark.parametrize(
    ("whole", "pods", "services"),
    [
        ("10.0.0.0/8", "10.128.0.0/9", "10.0.0.0/12"),  # an eighth would be more than an API server takes
        ("172.16.0.0/12", "172.24.0.0/13", "172.16.0.0/15"),
        ("192.168.0.0/16", "192.168.128.0/17", "192.168.0.0/19"),
    ],
)
def test_the_upper_half_is_for_pods_and_the_first_eighth_for_services(whole: str, pods: str, services: str) -> None:
    assert str(pods_of(IPv4Network(whole))) == pods
    assert str(services_of(IPv4Network(whole))) == services


def test_a_range_of_one_address_is_not_split() -> None:
    one = IPv4Network("10.0.0.1/32")

    assert pods_of(one) == services_of(one) == one


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0.1/8", "fd00::/8", "", "x", None, 5.5])
def test_what_is_no_ipv4_network_is_nothing(text: object) -> None:
    assert network(text) is None


def test_ranges_said_on_the_components_that_use_them_are_the_clusters() -> None:
    config = completed(
        kubeControllerManager={"clusterCIDR": "100.112.0.0/12"},
        kubeAPIServer={"serviceClusterIPRange": "100.65.0.0/16"},
    )

    assert config.cluster["podCIDR"] == "100.112.0.0/12"
    assert config.cluster["serviceClusterIPRange"] == "100.65.0.0/16"
    assert config.cluster["kubeProxy"]["clusterCIDR"] == "100.112.0.0/12"
    assert config.cluster["clusterDNS"]["serverIP"] == "100.65.0.10"
    assert config.ledger.source("podCIDR") == "kubeControllerManager.clusterCIDR"


def test_with_amazonvpc_pods_have_addresses_of_the_machines_network() -> None:
    cluster = completed(networking={"plugin": "amazonvpc"}, networkCIDR="10.1.0.0/16").cluster

    assert cluster["nonMasqueradeCIDR"] == cluster["podCIDR"] == "10.1.0.0/16"
    assert cluster["serviceClusterIPRange"] == "100.64.0.0/13"
    assert "clusterCIDR" not in cluster["kubeProxy"]


def test_aws_gets_the_usual_network_unless_one_exists_already() -> None:
    assert completed().cluster["networkCIDR"] == "172.20.0.0/16"
    assert "networkCIDR" not in completed(networkID="vpc-1").cluster
    assert "networkCIDR" not in completed(cloud="gce").cluster
    assert "networkCIDR" not in completed(cloud="metal").cluster


def test_one_subnet_for_each_zone_with_an_eighth_of_the_network_the_first_left_free() -> None:
    subnets = completed().cluster["subnets"]

    assert list(subnets) == ZONES["aws"]
    assert [each["cidr"] for each in subnets.values()] == ["172.20.32.0/19", "172.20.64.0/19", "172.20.96.0/19"]
    assert {each["type"] for each in subnets.values()} == {"Public"}


def test_a_private_network_has_a_utility_subnet_in_each_zone_out_of_the_first_eighth() -> None:
    subnets = completed(topology={"masters": "private"}).cluster["subnets"]
    utility = {name: each["cidr"] for name, each in subnets.items() if each["type"] == "Utility"}

    assert utility == {
        "utility-us-east-1a": "172.20.0.0/22",
        "utility-us-east-1b": "172.20.4.0/22",
        "utility-us-east-1c": "172.20.8.0/22",
    }
    assert {each["type"] for each in subnets.values()} == {"Utility", "Private"}


def test_on_gce_one_subnet_spans_the_region() -> None:
    cluster = completed(cloud="gce").cluster

    assert cluster["region"] == "us-central1"
    assert cluster["subnets"] == {"us-central1": {"region": "us-central1", "type": "Public"}}


@pytest.mark.parametrize("cloud", ["local", "metal"])
def test_where_the_cloud_has_no_subnets_there_are_none(cloud: str) -> None:
    assert completed(cloud=cloud).cluster["subnets"] == {}


def test_subnets_without_addresses_get_what_the_others_leave_free() -> None:
    subnets_given = [
        {"name": "own", "zone": "us-east-1a", "cidr": "172.20.64.0/19"},
        {"name": "us-east-1b"},
        {"name": "exists", "zone": "us-east-1c", "id": "subnet-1"},
    ]
    subnets = completed(subnets=subnets_given).cluster["subnets"]

    assert subnets["own"]["cidr"] == "172.20.64.0/19"
    assert subnets["us-east-1b"] == {"zone": "us-east-1b", "type": "Public", "cidr": "172.20.32.0/19"}
    assert "cidr" not in subnets["exists"]


def test_a_network_too_full_for_another_subnet_is_a_problem_that_names_the_subnet() -> None:
    subnets_given = [{"name": f"s{index}", "zone": "us-east-1a"} for index in range(8)]
    found = problems(zones=["us-east-1a"], subnets=subnets_given)

    assert list(found) == ["subnets.s7.cidr"]
    assert found["subnets.s7.cidr"].message == "no part of 172.20.0.0/16 is left for 's7'"
    assert "larger networkCIDR" in found["subnets.s7.cidr"].hint


@pytest.mark.parametrize(
    ("cloud", "zone", "region"),
    [
        ("aws", "us-east-1a", "us-east-1"),
        ("aws", "us-gov-west-1b", "us-gov-west-1"),
        ("aws", "us-west-2-lax-1a", "us-west-2"),
        ("aws", "nonsense", None),
        ("gce", "europe-west4-b", "europe-west4"),
        ("gce", "europe-west4", None),
        ("metal", "rack-1", None),
    ],
)
def test_the_region_of_a_zone_is_read_off_its_name(cloud: str, zone: str, region: str | None) -> None:
    assert region_of(cloud, zone) == region


def test_on_gce_zones_are_read_off_the_groups_of_members_where_nothing_else_names_them() -> None:
    members = {name: {"instanceGroup": f"master-us-central1-{name}"} for name in "ab"}
    cluster = {"etcdClusters": {"main": {"members": members}, "events": {"members": members}}}

    assert zones_in_names("gce", cluster) == ["us-central1-a", "us-central1-b"]
    assert zones_in_names("aws", cluster) == []
    assert zones_in_names("gce", {}) == []
    assert zones_in_names("gce", {"etcdClusters": {"main": {"members": {"a": {}}}}}) == []


def test_a_cluster_on_gce_whose_members_alone_name_zones_completes_there() -> None:
    members = [{"name": name, "instanceGroup": f"master-us-central1-{name}"} for name in "abc"]
    config = completed(cloud="gce", zones=None, etcdClusters=[{"name": "main", "members": members}])

    assert config.cluster["zones"] == ZONES["gce"]
    assert [config.groups[f"master-us-central1-{name}"]["zones"] for name in "abc"] == [[zone] for zone in ZONES["gce"]]
