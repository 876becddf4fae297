"""Routes to the pods of other nodes: what is decided, for any routes and nodes there may be."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.agent.cluster.routes_plan import Node, RoutePlan, node, plan
from protokube.config.podranges import PodRange
from protokube.host import Route

FAR = ["100.96.0.0/16", "10.0.0.2/32", "0.0.0.0/0", "10.0.0.0/24", "100.97.1.0/24", "fd00:9::/64", "fd00:1::/63"]
SUBNETS = [f"100.96.{number}.0/24" for number in range(6)] + ["fd00:1::/64", *FAR, "rubbish"]
ADDRESSES = [f"10.0.0.{number}" for number in range(10, 15)]
ADDRESSES += [
    "10.0.0.0",
    "10.0.0.255",
    "8.8.8.8",
    "100.96.1.7",
    "127.0.0.1",
    "fd00::7",
    "fd00::7%x\nroute del default",
    "rubbish",
]
PODS = (
    PodRange(network=ip_network("100.96.0.0/16"), node_mask=24),
    PodRange(network=ip_network("fd00:1::/48"), node_mask=64),
)
NEAR = Route(destination="10.0.0.0/24", via="", ours=False)
NEAR_IPV6 = Route(destination="fd00::/120", via="", ours=False)
NODES = st.builds(
    Node,
    name=st.sampled_from([f"n{number}" for number in range(6)]),
    addresses=st.lists(st.sampled_from(ADDRESSES), max_size=2).map(tuple),
    ranges=st.lists(st.sampled_from(SUBNETS), max_size=2).map(tuple),
    created=st.sampled_from(["2026-03-01T12:00:00Z", "2026-03-01T12:00:01Z"]),
)
GOOD = st.builds(
    replace,
    NODES,
    addresses=st.sampled_from(ADDRESSES[1:5]).map(lambda one: (one,)),
    ranges=st.sampled_from(SUBNETS[:6]).map(lambda one: (one,)),
)
ROUTE = st.builds(
    Route,
    destination=st.sampled_from(["default", *SUBNETS[:-1]]),
    via=st.sampled_from(ADDRESSES[:-2]),
    ours=st.booleans(),
)
ROUTES = st.tuples(st.sets(ROUTE), st.sets(st.sampled_from([NEAR, NEAR_IPV6]))).map(lambda both: both[0] | both[1])
HOSTS = {each: set(ip_network(each.destination).hosts()) for each in (NEAR, NEAR_IPV6)}


def a_node(name: str, address: str, *ranges: str, created: str = "2026-03-01T12:00:00Z") -> Node:
    return Node(name=name, addresses=(address,), ranges=ranges, created=created)


def ours(destination: str, via: str) -> Route:
    return Route(destination=destination, via=via, ours=True)


def carried_out(observed: set[Route], chosen: RoutePlan) -> set[Route]:
    return (observed - set(chosen.remove)) | set(chosen.add)


@given(ROUTES, st.lists(NODES, unique_by=lambda each: each.name))
def test_only_ours_is_removed_and_nothing_of_others_is_replaced(observed: set[Route], nodes: list[Node]) -> None:
    chosen = plan(observed, nodes, "n0", ["10.0.0.10"], PODS)
    assert all(route.ours and route in observed for route in chosen.remove)
    assert all(route.ours for route in chosen.add)
    assert not {route.destination for route in chosen.add} & {r.destination for r in observed if not r.ours}


@given(ROUTES, st.lists(NODES, unique_by=lambda each: each.name))
def test_what_was_carried_out_leaves_nothing_to_do(observed: set[Route], nodes: list[Node]) -> None:
    first = plan(observed, nodes, "n0", ["10.0.0.10"], PODS)
    second = plan(carried_out(observed, first), nodes, "n0", ["10.0.0.10"], PODS)
    assert (second.remove, second.add) == ((), ())


@given(ROUTES, st.lists(NODES, unique_by=lambda each: each.name), st.randoms(use_true_random=False))
def test_the_order_of_what_is_seen_does_not_matter(observed: set[Route], nodes: list[Node], random: object) -> None:
    shuffled = list(nodes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert plan(observed, nodes, "n0", ["10.0.0.10"], PODS) == plan(
        sorted(observed, key=str), shuffled, "n0", ["10.0.0.10"], PODS
    )


@given(ROUTES, st.lists(NODES, unique_by=lambda each: each.name))
def test_of_ours_no_destination_has_two_ways_and_none_leads_to_this_machine(
    observed: set[Route], nodes: list[Node]
) -> None:
    after = [r for r in carried_out(observed, plan(observed, nodes, "n0", ["10.0.0.10"], PODS)) if r.ours]
    assert len({route.destination for route in after}) == len(after)
    assert "10.0.0.10" not in {route.via for route in after}


@given(ROUTES, st.lists(NODES, unique_by=lambda each: each.name))
def test_whatever_nodes_say_only_parts_of_the_pods_range_are_routed_and_only_to_neighbours(
    observed: set[Route], nodes: list[Node]
) -> None:
    chosen = plan(observed, nodes, "n0", ["10.0.0.10"], PODS)
    for route in (each for each in carried_out(observed, chosen) if each.ours):
        destination, via = ip_network(route.destination), ip_address(route.via)
        whole, mask, near = {
            4: ("100.96.0.0/16", 24, NEAR),
            6: ("fd00:1::/48", 64, NEAR_IPV6),
        }[destination.version]
        assert destination.prefixlen == mask
        assert destination.network_address in ip_network(whole)
        assert near in observed
        assert via in HOSTS[near]


@given(ROUTES, st.lists(NODES, unique_by=lambda each: each.name))
def test_what_a_node_has_and_no_route_leads_to_is_told_with_a_reason(observed: set[Route], nodes: list[Node]) -> None:
    chosen = plan(observed, nodes, "n0", ["10.0.0.10"], PODS)
    after = {route.destination for route in carried_out(observed, chosen) if route.ours}
    reported = {destination for destination, reason in chosen.leave if reason}
    claimed = {text for each in nodes if each.name != "n0" for text in each.ranges if text != "rubbish"}
    assert claimed <= after | reported


@given(ROUTES, st.lists(GOOD, unique_by=lambda each: each.name), GOOD | NODES)
def test_no_node_that_comes_later_changes_the_way_to_another(
    observed: set[Route], nodes: list[Node], late: Node
) -> None:
    seen, evil = observed | {NEAR}, replace(late, name="a", created="2026-03-01T12:00:02Z")
    before = plan(seen, nodes, "n0", ["10.0.0.10"], PODS)
    after = plan(seen, [*nodes, evil], "n0", ["10.0.0.10"], PODS)
    ways = [{each for each in carried_out(seen, chosen) if each.ours} for chosen in (before, after)]
    assert ways[0] <= ways[1]


@pytest.mark.parametrize(
    ("range_", "why"),
    [
        ("10.0.0.12/32", "its range is outside of the pods' 100.96.0.0/16, fd00:1::/48"),
        ("0.0.0.0/0", "its range is outside of the pods' 100.96.0.0/16, fd00:1::/48"),
        ("100.96.4.0/25", "its range is no /24, as that of every node is"),
        ("100.96.0.0/16", "its range is no /24, as that of every node is"),
    ],
)
def test_a_node_cannot_have_the_address_of_a_master_routed_to_itself(range_: str, why: str) -> None:
    chosen = plan([NEAR], [a_node("evil", "10.0.0.99", range_)], "a", ["10.0.0.1"], PODS)
    assert (chosen.add, chosen.leave) == ((), ((range_, f"evil: {why}"),))


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("8.8.8.8", "it is listed with 8.8.8.8, which is no neighbour of this machine"),
        ("10.0.0.255", "it is listed with 10.0.0.255, which is no neighbour of this machine"),
        ("100.96.1.7", "it is listed with 100.96.1.7, an address of pods"),
        ("10.0.0.1", "it is listed with an address of this machine"),
        ("fd00::7", "it has no address of that family"),
    ],
)
def test_no_route_leads_over_what_is_no_neighbour(address: str, why: str) -> None:
    own = Route(destination="100.96.1.0/24", via="", ours=False)  # the bridge of this machine's pods
    chosen = plan([NEAR, own], [a_node("evil", address, "100.96.2.0/24")], "a", ["10.0.0.1"], PODS)
    assert (chosen.add, chosen.leave) == ((), (("100.96.2.0/24", f"evil: {why}"),))


def test_what_an_address_says_behind_a_percent_sign_is_told_to_nobody() -> None:
    injected = a_node("evil", "fd00::7%x\nroute del default", "fd00:1:0:2::/64")
    plain = a_node("b", "fd00::8", "fd00:1:0:3::/64")
    chosen = plan([NEAR_IPV6], [injected, plain], "a", ["10.0.0.1"], PODS)
    assert chosen.add == (ours("fd00:1:0:3::/64", "fd00::8"),)


def test_an_address_that_two_nodes_have_misleads_only_the_range_of_the_one_that_lies() -> None:
    nodes = [a_node("b", "10.0.0.2", "100.96.2.0/24"), a_node("evil", "10.0.0.2", "100.96.9.0/24")]
    chosen = plan([NEAR], nodes, "a", ["10.0.0.1"], PODS)
    assert chosen.add == (ours("100.96.2.0/24", "10.0.0.2"), ours("100.96.9.0/24", "10.0.0.2"))


def test_of_two_that_claim_one_range_the_older_has_it_whatever_their_names_are() -> None:
    nodes = [
        a_node("aaa", "10.0.0.99", "100.96.2.0/24", created="2026-03-01T12:00:01Z"),
        a_node("b", "10.0.0.2", "100.96.2.0/24"),
    ]
    chosen = plan([NEAR], nodes, "a", ["10.0.0.1"], PODS)
    assert chosen.add == (ours("100.96.2.0/24", "10.0.0.2"),)
    assert chosen.leave == (("100.96.2.0/24", "aaa: its range is in use"),)


def test_where_no_range_of_pods_is_known_nothing_is_routed() -> None:
    chosen = plan([NEAR], [a_node("b", "10.0.0.2", "100.96.2.0/24")], "a", ["10.0.0.1"], ())
    assert (chosen.add, chosen.leave) == ((), (("100.96.2.0/24", "b: its range is outside of the pods' range"),))


def test_every_other_node_is_reached_by_its_address() -> None:
    nodes = [
        a_node("a", "10.0.0.1", "100.96.1.0/24"),
        a_node("b", "10.0.0.2", "100.96.2.0/24"),
        a_node("c", "10.0.0.3", "100.96.3.0/24"),
    ]
    chosen = plan([NEAR], nodes, "a", ["10.0.0.1"], PODS)
    assert chosen.add == (ours("100.96.2.0/24", "10.0.0.2"), ours("100.96.3.0/24", "10.0.0.3"))
    assert (chosen.remove, chosen.leave) == ((), ())


def test_a_node_that_is_gone_loses_its_route_and_one_that_moved_gets_another() -> None:
    before = [ours("100.96.2.0/24", "10.0.0.2"), ours("100.96.3.0/24", "10.0.0.3")]
    chosen = plan([NEAR, *before], [a_node("b", "10.0.0.9", "100.96.2.0/24")], "a", ["10.0.0.1"], PODS)
    assert chosen.remove == tuple(before)
    assert chosen.add == (ours("100.96.2.0/24", "10.0.0.9"),)


def test_the_address_of_a_former_node_that_is_ours_now_leads_nowhere() -> None:
    chosen = plan([NEAR], [a_node("old", "10.0.0.1", "100.96.2.0/24")], "new", ["10.0.0.1"], PODS)
    assert chosen.add == ()
    assert chosen.leave == (("100.96.2.0/24", "old: it is listed with an address of this machine"),)


def test_a_range_that_overlaps_ours_is_not_routed_away() -> None:
    nodes = [a_node("a", "10.0.0.1", "100.96.1.0/24"), a_node("b", "10.0.0.2", "100.96.0.0/16")]
    assert plan([NEAR], nodes, "a", ["10.0.0.1"], PODS).add == ()


def test_a_node_object_is_read_whatever_it_lacks() -> None:
    addresses = [{"type": "Hostname", "address": "b"}, {"type": "InternalIP", "address": "10.0.0.2"}]
    born = "2026-03-01T12:00:00Z"
    whole = {
        "metadata": {"name": "b", "creationTimestamp": born},
        "spec": {"podCIDR": "100.96.2.0/24", "podCIDRs": ["100.96.2.0/24", "fd00:2::/64"]},
        "status": {"addresses": addresses},
    }
    read = Node(name="b", addresses=("10.0.0.2",), ranges=("100.96.2.0/24", "fd00:2::/64"), created=born)
    assert node(whole) == read
    assert node({"metadata": {"name": "b"}, "spec": {"podCIDR": "100.96.2.0/24"}}).ranges == ("100.96.2.0/24",)
    assert node({"metadata": {"name": "b"}}) == Node(name="b", addresses=(), ranges=())
