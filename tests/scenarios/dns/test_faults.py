"""Faults that last for minutes, under a fake clock: the records meanwhile and afterwards."""

from __future__ import annotations

import pytest

from builders.dns_objects import FIRST, LATER, a_node, a_pod, a_service
from clusters.dns_world import API, GRACE, PRIVATE, PUBLIC, Triple, World
from protokube.controllers.dns.controller import RELIST_MOST
from protokube.controllers.dns.decide.zonerules import Rule
from protokube.controllers.dns.read.agentnames import Names
from protokube.controllers.dns.tell.unmet import unmet
from protokube.records import Record
from protokube.records.member import Publish, plan_member
from protokube.records.zones import Zone

WEB: Triple = ("web.example.com", "A", "10.0.0.1")


def a_world(*documents: dict[str, object]) -> World:
    """One cluster whose objects have what they ask for."""
    world = World(("a",))
    for document in documents:
        world.clusters["a"].put(document)
    world.rounds("a")
    return world


def passes(world: World, seconds: float, step: float = 20.0) -> None:
    """Advance the clock, with rounds as they are due."""
    while seconds > 0:
        world.pass_time(min(step, seconds))
        world.rounds("a")
        seconds -= step


def standing(world: World, zone: Zone = PUBLIC) -> set[Triple]:
    return set(world.values(zone))


def test_an_idle_hour_costs_a_dozen_lists_and_not_a_single_write() -> None:
    world = World(("a",), rules=[Rule(name="example.com", id=PUBLIC.id)])
    world.clusters["a"].put(a_pod("web", node="n1", internal_names="web.example.com"))
    world.rounds("a")
    far_side = world.dns[PUBLIC]
    lists, writes = far_side.lists, far_side.writes
    for _ in range(3600):
        world.pass_time(1)
        world.rounds("a")
    assert far_side.lists - lists <= 11, "and one of the zones"
    assert far_side.writes == writes


def test_ten_minutes_without_an_api_server_lose_nothing_and_what_went_meanwhile_goes_afterwards() -> None:
    world = a_world(a_pod("web", node="n1", internal_names="web.example.com"))
    cluster = world.clusters["a"]
    cluster.fall_silent()
    cluster.answers = False
    cluster.remove("pod/default/web")
    passes(world, 600)
    assert standing(world, PRIVATE) == {WEB}
    cluster.heal()
    passes(world, GRACE + 40)
    assert standing(world, PRIVATE) == set()


def test_a_node_that_lists_leave_out_for_an_hour_keeps_its_name() -> None:
    world = a_world(a_node("n1", internal=["10.0.0.1"], internal_names="web.example.com"))
    world.clusters["a"].hide(["node/n1"], lies=1000)
    passes(world, 3600)
    assert standing(world, PRIVATE) == {WEB}
    assert world.clusters["a"].relists > 3


def test_lists_that_stay_wrong_are_asked_for_more_and_more_seldom() -> None:
    world = a_world(a_pod("web", node="n1", internal_names="web.example.com"))
    cluster = world.clusters["a"]
    cluster.hide(["pod/default/web"], lies=10**6)
    passes(world, 7200, step=5)
    assert 5 < cluster.relists < 7 + 7200 / RELIST_MOST


def test_a_node_that_the_list_leaves_out_does_not_take_the_addresses_of_services_away() -> None:
    world = a_world(
        a_node("n1", external=["10.0.0.1"]),
        a_node("n2", external=["10.0.0.2"]),
        a_service("web", "NodePort", external_names="web.example.com"),
    )
    world.clusters["a"].hide(["node/n1"], lies=3)
    passes(world, 1200)
    assert standing(world) == {WEB, ("web.example.com", "A", "10.0.0.2")}


def test_the_younger_of_two_that_ask_for_one_value_leaves_while_the_list_leaves_the_elder_out() -> None:
    """The mark of the older object stays next to that of the newer: a read confirmed that it exists."""
    world = a_world(
        a_pod("elder", node="n1", internal_names="web.example.com", created=FIRST),
        a_pod("younger", node="n1", internal_names="web.example.com", created=LATER),
    )
    cluster = world.clusters["a"]
    cluster.hide(["pod/default/elder"], lies=10**6)
    passes(world, 60)
    cluster.remove("pod/default/younger")
    passes(world, 1200)
    assert standing(world, PRIVATE) == {WEB}


def test_an_old_list_does_not_bring_back_what_its_object_has_replaced() -> None:
    """The list froze during a change of address; the object has the old address again."""
    world = a_world(a_service("web", "LoadBalancer", {"ip": "10.0.0.1"}, external_names="web.example.com"))
    cluster = world.clusters["a"]
    cluster.put(a_service("web", "LoadBalancer", {"ip": "10.0.0.2"}, external_names="web.example.com"))
    cluster.fall_silent()
    cluster.put(a_service("web", "LoadBalancer", {"ip": "10.0.0.1"}, external_names="web.example.com"))
    world.rounds("a")
    assert WEB in standing(world)
    passes(world, 600)
    assert standing(world) == {WEB}


def test_an_empty_list_of_many_names_is_read_again_and_what_really_went_stays_for_a_person() -> None:
    """The removal cap holds many values back; a few of their objects are read to detect a wrong list."""
    pods = [a_pod(f"p{number}", node="n1", internal_names=f"p{number}.example.com") for number in range(40)]
    world = a_world(*pods)
    cluster, before = world.clusters["a"], standing(world, PRIVATE)
    cluster.hide(cluster.objects)
    passes(world, GRACE + 60)
    assert cluster.relists >= 1
    assert cluster.honest
    assert len(cluster.asked_for) < 15, "not all of them are asked for"
    assert standing(world, PRIVATE) == before
    for number in range(30):
        cluster.remove(f"pod/default/p{number}")
    passes(world, 1000)
    assert standing(world, PRIVATE) == before
    world.replicas["a"][0] = world.start("a", leader=True, forced=True)
    passes(world, 2 * GRACE)
    assert len(standing(world, PRIVATE)) == 10


def test_a_name_that_the_agents_leave_is_taken_over_and_their_last_addresses_go() -> None:
    world = World(("a",))
    cluster = world.clusters["a"]
    cluster.agents = Names(reserved=frozenset({API}))
    world.write(PUBLIC, Record(name=API, type="A", values=("203.0.113.7",), ttl=10))
    cluster.put(a_service("api", "LoadBalancer", {"ip": "10.0.0.1"}, external_names=API))
    passes(world, 100)
    assert standing(world) == {(API, "A", "203.0.113.7")}
    cluster.agents = Names(left=frozenset({API}))
    world.rounds("a")
    assert standing(world) == {(API, "A", "203.0.113.7"), (API, "A", "10.0.0.1")}
    passes(world, GRACE + 40)
    assert standing(world) == {(API, "A", "10.0.0.1")}


API_SERVERS = {number: (API, "A", f"10.0.0.{number}") for number in (1, 2, 3)}


def an_api_server(number: int) -> dict[str, object]:
    return a_pod(f"kube-apiserver-m{number}", addresses=[f"10.0.0.{number}"], node=f"m{number}", internal_names=API)


def world_of_agents() -> World:
    """Three API servers, whose addresses the agents wrote before they gave the name up."""
    world = World(("a",))
    for number in API_SERVERS:
        world.clusters["a"].put(an_api_server(number))
    world.write(PRIVATE, Record(name=API, type="A", values=tuple(each[2] for each in API_SERVERS.values()), ttl=10))
    world.clusters["a"].agents = Names(left=frozenset({API}))
    return world


@pytest.mark.parametrize("restarts", [False, True])
def test_a_list_that_lacks_api_servers_takes_none_of_them_out_of_the_name_that_the_agents_left(restarts: bool) -> None:
    world = world_of_agents()
    cluster = world.clusters["a"]
    cluster.hide(["pod/default/kube-apiserver-m2", "pod/default/kube-apiserver-m3"], lies=10**6)
    for _ in range(6):
        passes(world, 600)
        if restarts:
            world.restart("a", 0)
    assert standing(world, PRIVATE) == set(API_SERVERS.values())
    cluster.heal()
    cluster.remove("pod/default/kube-apiserver-m3")
    passes(world, GRACE + 400)
    assert standing(world, PRIVATE) == {API_SERVERS[1], API_SERVERS[2]}


def test_a_lease_that_is_gone_does_not_let_go_what_the_agents_left() -> None:
    world = world_of_agents()
    cluster = world.clusters["a"]
    cluster.hide(["pod/default/kube-apiserver-m2"], lies=10**6)
    passes(world, 60)
    cluster.agents = Names()
    passes(world, 3600)
    assert standing(world, PRIVATE) == set(API_SERVERS.values())


def test_a_person_may_let_go_what_a_node_still_has() -> None:
    world = World(("a",))
    cluster = world.clusters["a"]
    cluster.put(an_api_server(1))
    cluster.put(a_node("m2", internal=["10.0.0.2"]))
    cluster.agents = Names(left=frozenset({API}))
    world.write(PRIVATE, Record(name=API, type="A", values=("10.0.0.1", "10.0.0.2"), ttl=10))
    passes(world, 3600)
    assert standing(world, PRIVATE) == {API_SERVERS[1], API_SERVERS[2]}
    world.replicas["a"][0] = world.start("a", leader=True, adopt=frozenset({API}))
    passes(world, 2 * GRACE)
    assert standing(world, PRIVATE) == {API_SERVERS[1]}


MEMBER = "etcd-a.internal.example.com"


@pytest.mark.parametrize("renewed", [True, False])
def test_nobody_takes_the_name_of_an_etcd_member_that_is_still_to_come(renewed: bool) -> None:
    api = frozenset({API})
    world = World(("a",))
    cluster = world.clusters["a"]
    held, left = (api, frozenset[str]()) if renewed else (frozenset[str](), api)
    cluster.agents = Names(members=frozenset({MEMBER}), reserved=held, left=left)
    coming = "etcd-b.internal.example.com"
    cluster.put(
        a_service("tenant", "LoadBalancer", {"ip": "10.0.0.66"}, external_names=f"{coming},{MEMBER},web.example.com")
    )
    done = world.rounds("a")[0]
    assert {name for name, _, _ in standing(world)} == {"web.example.com"}
    assert {(each.source, each.name) for each in unmet(done)} == {
        ("service/default/tenant", name) for name in (coming, MEMBER)
    }
    assert isinstance(plan_member(world.dns[PUBLIC].list_records(), coming, "10.0.0.2", 1, "m2"), Publish)


def test_what_stands_at_the_name_of_an_etcd_member_by_somebodys_wish_goes_once_it_is_known_to_be_one() -> None:
    coming = "etcd-b.internal.example.com"
    world = a_world(a_service("tenant", "LoadBalancer", {"ip": "10.0.0.66"}, external_names=coming))
    assert standing(world) == {(coming, "A", "10.0.0.66")}
    world.clusters["a"].agents = Names(members=frozenset({MEMBER}))
    passes(world, GRACE + 40)
    assert standing(world) == set()


def test_a_balancer_without_an_address_keeps_its_last_one_for_five_minutes_also_without_a_grace_time() -> None:
    world = a_world()
    world.replicas["a"][0] = world.start("a", leader=True, grace=0.0)
    cluster = world.clusters["a"]
    cluster.put(a_service("web", "LoadBalancer", {"ip": "10.0.0.1"}, external_names="web.example.com"))
    world.rounds("a")
    cluster.put(a_service("web", "LoadBalancer", external_names="web.example.com"))
    passes(world, 290)
    assert standing(world) == {WEB}
    passes(world, 40)
    assert standing(world) == set()


def test_two_that_both_believe_to_lead_do_no_harm() -> None:
    world = a_world(a_pod("web", node="n1", internal_names="web.example.com"))
    world.lead("a", True, True)
    for number in range(5):
        world.clusters["a"].put(a_pod(f"p{number}", node="n1", internal_names=f"p{number}.example.com,web.example.com"))
        passes(world, 10)
    for number in range(5):
        world.clusters["a"].remove(f"pod/default/p{number}")
        passes(world, GRACE + 40)
    assert standing(world, PRIVATE) == {WEB}


def test_a_zone_that_is_no_longer_listed_is_left_as_it_is() -> None:
    world = a_world(a_service("web", "LoadBalancer", {"ip": "10.0.0.1"}, external_names="web.example.com"))
    del world.wires["a"][PUBLIC]
    world.restart("a", 0)
    world.clusters["a"].remove("service/default/web")
    passes(world, 600)
    assert (standing(world), standing(world, PRIVATE)) == ({WEB}, set())


def test_a_value_that_two_clusters_ask_for_stays_when_one_of_them_leaves() -> None:
    world = World()
    for owner, cluster in world.clusters.items():
        cluster.put(a_service("web", "LoadBalancer", {"ip": "10.0.0.1"}, external_names="web.example.com"))
        world.rounds(owner)
    world.clusters["a"].remove("service/default/web")
    passes(world, GRACE + 400)
    assert (world.marked("a", PUBLIC), world.marked("b", PUBLIC)) == (set(), {WEB})
    assert standing(world) == {WEB}
