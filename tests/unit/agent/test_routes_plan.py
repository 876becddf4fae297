"""Routes to the pods of other nodes: what is decided, for any routes and nodes there may be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protokube.agent.routes_plan import Node, RoutePlan, node, plan
from protokube.host import Route

SUBNETS = [f"100.96.{number}.0/24" for number in range(6)] + ["fd00:1::/64", "100.96.0.0/16", "rubbish"]
ADDRESSES = [f"10.0.0.{number}" for number in range(5)] + ["fd00::7", "rubbish"]
NODES = st.builds(
    Node,
    name=st.sampled_from([f"n{number}" for number in range(6)]),
    addresses=st.lists(st.sampled_from(ADDRESSES), max_size=2).map(tuple),
    ranges=st.lists(st.sampled_from(SUBNETS), max_size=2).map(tuple),
)
ROUTES = st.builds(
    Route,
    destination=st.sampled_from(["default", *SUBNETS[:-1]]),
    via=st.sampled_from(ADDRESSES[:-1]),
    ours=st.booleans(),
)


def a_node(name: str, address: str, *ranges: str) -> Node:
    return Node(name=name, addresses=(address,), ranges=ranges)


def ours(destination: str, via: str) -> Route:
    return Route(destination=destination, via=via, ours=True)


def carried_out(observed: set[Route], chosen: RoutePlan) -> set[Route]:
    return (observed - set(chosen.remove)) | set(chosen.add)


@given(st.sets(ROUTES), st.lists(NODES, unique_by=lambda each: each.name))
def test_only_ours_is_removed_and_nothing_of_others_is_replaced(observed: set[Route], nodes: list[Node]) -> None:
    chosen = plan(observed, nodes, "n0", ["10.0.0.0"])
    assert all(route.ours and route in observed for route in chosen.remove)
    assert all(route.ours for route in chosen.add)
    assert not {route.destination for route in chosen.add} & {r.destination for r in observed if not r.ours}


@given(st.sets(ROUTES), st.lists(NODES, unique_by=lambda each: each.name))
def test_what_was_carried_out_leaves_nothing_to_do(observed: set[Route], nodes: list[Node]) -> None:
    first = plan(observed, nodes, "n0", ["10.0.0.0"])
    second = plan(carried_out(observed, first), nodes, "n0", ["10.0.0.0"])
    assert (second.remove, second.add) == ((), ())


@given(st.sets(ROUTES), st.lists(NODES, unique_by=lambda each: each.name), st.randoms(use_true_random=False))
def test_the_order_of_what_is_seen_does_not_matter(observed: set[Route], nodes: list[Node], random: object) -> None:
    shuffled = list(nodes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert plan(observed, nodes, "n0", ["10.0.0.0"]) == plan(sorted(observed, key=str), shuffled, "n0", ["10.0.0.0"])


@given(st.sets(ROUTES), st.lists(NODES, unique_by=lambda each: each.name))
def test_of_ours_no_destination_has_two_ways_and_none_leads_to_this_machine(
    observed: set[Route], nodes: list[Node]
) -> None:
    after = [r for r in carried_out(observed, plan(observed, nodes, "n0", ["10.0.0.0"])) if r.ours]
    assert len({route.destination for route in after}) == len(after)
    assert "10.0.0.0" not in {route.via for route in after}


def test_every_other_node_is_reached_by_its_address() -> None:
    nodes = [
        a_node("a", "10.0.0.1", "100.96.1.0/24"),
        a_node("b", "10.0.0.2", "100.96.2.0/24"),
        a_node("c", "10.0.0.3", "100.96.3.0/24"),
    ]
    chosen = plan([], nodes, "a", ["10.0.0.1"])
    assert chosen.add == (ours("100.96.2.0/24", "10.0.0.2"), ours("100.96.3.0/24", "10.0.0.3"))
    assert (chosen.remove, chosen.leave) == ((), ())


def test_a_node_that_is_gone_loses_its_route_and_one_that_moved_gets_another() -> None:
    before = [ours("100.96.2.0/24", "10.0.0.2"), ours("100.96.3.0/24", "10.0.0.3")]
    chosen = plan(before, [a_node("b", "10.0.0.9", "100.96.2.0/24")], "a", ["10.0.0.1"])
    assert chosen.remove == tuple(before)
    assert chosen.add == (ours("100.96.2.0/24", "10.0.0.9"),)


def test_the_address_of_a_former_node_that_is_ours_now_leads_nowhere() -> None:
    chosen = plan([], [a_node("old", "10.0.0.1", "100.96.2.0/24")], "new", ["10.0.0.1"])
    assert chosen.add == ()
    assert chosen.leave == (("100.96.2.0/24", "old is listed with an address of this machine"),)


def test_a_range_that_overlaps_ours_is_not_routed_away() -> None:
    nodes = [a_node("a", "10.0.0.1", "100.96.1.0/24"), a_node("b", "10.0.0.2", "100.96.0.0/16")]
    assert plan([], nodes, "a", ["10.0.0.1"]).add == ()


def test_a_node_object_is_read_whatever_it_lacks() -> None:
    addresses = [{"type": "Hostname", "address": "b"}, {"type": "InternalIP", "address": "10.0.0.2"}]
    whole = {
        "metadata": {"name": "b"},
        "spec": {"podCIDR": "100.96.2.0/24", "podCIDRs": ["100.96.2.0/24", "fd00:2::/64"]},
        "status": {"addresses": addresses},
    }
    assert node(whole) == Node(name="b", addresses=("10.0.0.2",), ranges=("100.96.2.0/24", "fd00:2::/64"))
    assert node({"metadata": {"name": "b"}, "spec": {"podCIDR": "100.96.2.0/24"}}).ranges == ("100.96.2.0/24",)
    assert node({"metadata": {"name": "b"}}) == Node(name="b", addresses=(), ranges=())
