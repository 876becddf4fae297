"""Ranges that must not meet, must lie inside others and must be large enough; ports that are taken."""

from __future__ import annotations

from typing import Any

import pytest

from builders.config import a_group, completed, problems, the_problem, warnings


def test_pods_and_services_do_not_share_addresses() -> None:
    problem = the_problem(podCIDR="100.64.0.0/12")

    assert problem.path == "serviceClusterIPRange"
    assert problem.message == "100.64.0.0/13 overlaps podCIDR 100.64.0.0/12"
    assert str(problem.where) == "spec.yaml:11"


@pytest.mark.parametrize(
    ("field", "fields"),
    [("podCIDR", {"podCIDR": "10.1.0.0/16"}), ("serviceClusterIPRange", {"serviceClusterIPRange": "10.1.0.0/16"})],
)
def test_pods_and_services_lie_inside_the_range_that_is_not_masqueraded(field: str, fields: dict[str, str]) -> None:
    problem = the_problem(**fields)

    assert (problem.path, problem.message) == (field, "10.1.0.0/16 is not inside nonMasqueradeCIDR 100.64.0.0/10")
    assert problem.hint == "otherwise traffic to it is masqueraded; choose a range inside"


def test_machines_do_not_have_addresses_of_pods() -> None:
    problem = the_problem(networkCIDR="100.64.0.0/16")

    assert problem.path == "networkCIDR"
    assert problem.message == "100.64.0.0/16 overlaps nonMasqueradeCIDR 100.64.0.0/10"


def test_with_amazonvpc_pods_may_have_addresses_of_machines() -> None:
    assert completed(networking={"plugin": "amazonvpc"}).cluster["podCIDR"] == "172.20.0.0/16"


@pytest.mark.parametrize("prefix", [11, 29])
def test_services_have_as_many_addresses_as_an_api_server_takes(prefix: int) -> None:
    found = problems(serviceClusterIPRange=f"100.64.0.0/{prefix}")

    assert found["serviceClusterIPRange"].message == f"/{prefix} is not supported"
    assert found["serviceClusterIPRange"].hint == "/12, the largest that an API server accepts, to /28"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("nonsense", "'nonsense' is not a range of addresses", "for example 10.0.0.0/16"),
        ("10.1.2.3/16", "'10.1.2.3/16' has bits set after its prefix", "did you mean 10.1.0.0/16?"),
        ("fd00::/16", "'fd00::/16' is IPv6, which is not supported here", ""),
    ],
)
@pytest.mark.parametrize("field", ["networkCIDR", "nonMasqueradeCIDR", "podCIDR", "serviceClusterIPRange"])
def test_a_range_is_an_ipv4_range(field: str, text: str, message: str, hint: str) -> None:
    found = problems(**{field: text})

    assert (found[field].message, found[field].hint) == (message, hint)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("100.64.0.1", "100.64.0.1 is the address of the API server"),
        ("100.80.0.1", "100.80.0.1 is not inside serviceClusterIPRange 100.64.0.0/13"),
        ("", "'' is not an address"),
        ("dns", "'dns' is not an address"),
    ],
)
def test_the_dns_server_has_an_address_of_the_services_that_is_free(address: str, message: str) -> None:
    assert problems(clusterDNS={"serverIP": address})["clusterDNS.serverIP"].message == message


def test_an_address_of_the_dns_server_said_to_kubelet_is_blamed_there() -> None:
    problem = problems(kubelet={"clusterDNS": "10.0.0.1"})["clusterDNS.serverIP"]

    assert str(problem.where) == "spec.yaml:12"


def test_subnets_lie_inside_the_network_and_apart_from_each_other() -> None:
    subnets = [
        {"name": "a", "zone": "us-east-1a", "cidr": "172.20.0.0/20"},
        {"name": "b", "zone": "us-east-1b", "cidr": "172.20.8.0/21"},
        {"name": "c", "zone": "us-east-1c", "cidr": "10.0.0.0/20"},
        {"name": "d", "zone": "us-east-1c", "cidr": "172.20.99.1/20"},
    ]
    found = problems(subnets=subnets)

    assert found["subnets.b.cidr"].message == "172.20.8.0/21 overlaps subnet 'a' 172.20.0.0/20"
    assert found["subnets.c.cidr"].message == "10.0.0.0/20 is not inside the network 172.20.0.0/16"
    assert found["subnets.d.cidr"].hint == "did you mean 172.20.96.0/20?"
    assert set(found) == {"subnets.b.cidr", "subnets.c.cidr", "subnets.d.cidr"}


def test_a_network_of_several_ranges_takes_subnets_of_each() -> None:
    subnets = [{"name": "c", "zone": "us-east-1c", "cidr": "10.0.0.0/20"}]

    completed(subnets=subnets, zones=["us-east-1c"], additionalNetworkCIDRs=["10.0.0.0/16"])


@pytest.mark.parametrize("mask", [10, 31])
def test_the_range_of_a_node_is_a_part_of_the_pods_range(mask: int) -> None:
    problem = the_problem(kubeControllerManager={"nodeCIDRMaskSize": mask})

    assert problem.message == f"a range of /{mask} for each node does not fit into podCIDR 100.96.0.0/11"


def test_a_controller_manager_keeps_no_more_than_sixteen_bits_of_nodes() -> None:
    problem = the_problem(kubeControllerManager={"nodeCIDRMaskSize": 28})

    assert problem.message == "the controller manager refuses ranges of /28 in 100.96.0.0/11"
    assert problem.hint == "at most 16 bits longer than podCIDR: /27, or a smaller podCIDR"


def test_the_mask_of_a_family_is_checked_as_that_of_any_family_is() -> None:
    wide = the_problem(kubeControllerManager={"nodeCIDRMaskSizeIPv4": 10})
    fine = the_problem(kubeControllerManager={"nodeCIDRMaskSizeIPv4": 28})

    assert wide.path == fine.path == "kubeControllerManager.nodeCIDRMaskSizeIPv4"
    assert wide.message == "a range of /10 for each node does not fit into podCIDR 100.96.0.0/11"
    assert fine.message == "the controller manager refuses ranges of /28 in 100.96.0.0/11"


def test_a_controller_manager_takes_one_mask_for_a_range_and_not_two() -> None:
    problem = the_problem(kubeControllerManager={"nodeCIDRMaskSize": 24, "nodeCIDRMaskSizeIPv4": 24})

    assert problem.path == "kubeControllerManager.nodeCIDRMaskSizeIPv4"
    assert problem.message == "the controller manager does not start if nodeCIDRMaskSize is set too"
    assert problem.hint == "set only one of them"


def test_a_mask_of_ipv6_needs_a_range_of_ipv6() -> None:
    problem = the_problem(kubeControllerManager={"nodeCIDRMaskSizeIPv6": 64})

    assert problem.path == "kubeControllerManager.nodeCIDRMaskSizeIPv6"
    assert problem.message == "podCIDR 100.96.0.0/11 is not IPv6"
    assert problem.hint == "set nodeCIDRMaskSizeIPv4 or nodeCIDRMaskSize"


def test_before_1_23_a_mask_of_one_family_is_refused_where_there_is_only_one() -> None:
    manager = {"nodeCIDRMaskSizeIPv4": 25}
    problem = the_problem(kubernetesVersion="1.22.17", kubeControllerManager=manager)

    assert problem.message == "the controller manager of 1.22 accepts it only if pods have two IP families"
    assert problem.hint == "set nodeCIDRMaskSize"
    completed(kubernetesVersion="1.23.0", kubeControllerManager=manager)


@pytest.mark.parametrize("family", [4, 6])
def test_the_mask_of_a_family_is_no_extra_flag(family: int) -> None:
    problem = the_problem(kubeControllerManager={"extraFlags": {f"node-cidr-mask-size-ipv{family}": 25}})

    assert problem.message == "there is a field for it, which sets this flag"
    assert problem.hint == f"set kubeControllerManager.nodeCIDRMaskSizeIPv{family}"


@pytest.mark.parametrize("field", ["nodeCIDRMaskSize", "nodeCIDRMaskSizeIPv4", "nodeCIDRMaskSizeIPv6"])
def test_where_nodes_are_given_no_ranges_their_size_does_not_matter(field: str) -> None:
    completed(kubeControllerManager={field: 31, "allocateNodeCIDRs": False})


def test_a_range_too_small_for_the_nodes_there_may_be_is_a_warning() -> None:
    config = completed(a_group("pool", maxSize=20), a_group("jump", "Bastion", maxSize=500), podCIDR="100.96.0.0/20")

    assert warnings(config)["podCIDR"].message == ("100.96.0.0/20 has room for 16 nodes, the groups may grow to 23")


@pytest.mark.parametrize("field", ["sshAccess", "kubernetesApiAccess", "nodePortAccess"])
def test_who_may_reach_something_is_a_range_or_a_prefix_list(field: str) -> None:
    completed(**{field: ["203.0.113.7/24", "fd00::/8", "pl-12345", "198.51.100.1"]})
    problem = the_problem(**{field: ["10.0.0.0/8", "everybody"]})

    assert (problem.path, problem.message) == (f"{field}[1]", "'everybody' is not a range of addresses")


@pytest.mark.parametrize("text", ["", "30000", "32767-30000", "0-100", "1-70000", "a-b", "30000-32767\n"])
def test_node_ports_are_a_range_of_ports(text: str) -> None:
    problem = the_problem(kubeAPIServer={"serviceNodePortRange": text})

    assert problem.message == f"{text!r} is not a range of ports"
    assert problem.hint == "for example 30000-32767"


@pytest.mark.parametrize(
    ("text", "port", "who"),
    [
        ("10200-10255", 10250, "kubelet"),
        ("400-500", 443, "the API server"),
        ("4002-4010", 4002, "etcd events"),
        ("2390-2390", 2390, "etcd main"),
    ],
)
def test_node_ports_take_in_no_port_of_ours(text: str, port: int, who: str) -> None:
    problem = the_problem(kubeAPIServer={"serviceNodePortRange": text})

    assert problem.message == f"{text} contains {port}, the port of {who}"


@pytest.mark.parametrize(
    ("fields", "path", "original"),
    [
        (
            {"kubeAPIServer": {"serviceClusterIPRange": "100.65.0.0/16"}, "serviceClusterIPRange": "100.66.0.0/16"},
            "kubeAPIServer.serviceClusterIPRange",
            "serviceClusterIPRange",
        ),
        (
            {"kubeControllerManager": {"serviceClusterIPRange": "100.65.0.0/16"}},
            "kubeControllerManager.serviceClusterIPRange",
            "serviceClusterIPRange",
        ),
        (
            {"kubeControllerManager": {"clusterCIDR": "100.112.0.0/12"}, "podCIDR": "100.96.0.0/12"},
            "kubeControllerManager.clusterCIDR",
            "podCIDR",
        ),
        ({"clusterDNS": {"domain": "other"}}, "clusterDNS.domain", "clusterDNSDomain"),
        ({"kubelet": {"clusterDomain": "other"}}, "kubelet.clusterDomain", "clusterDNSDomain"),
    ],
)
def test_one_value_that_several_are_told_is_the_same_for_all(fields: dict[str, Any], path: str, original: str) -> None:
    problem = the_problem(**fields)

    assert problem.path == path
    assert f"differs from {original}" in problem.message
    assert problem.hint == f"set only {original}; this is derived from it"
