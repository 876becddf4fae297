"""The real dns-controller, a real API server, and BIND: names follow pods, nodes and services, and nobody loses any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from e2e.dns_zone import ANNOTATION, NODES, PODS, SERVICES, World, full
from e2e.real_api import real_api
from fakes.name_servers import bind
from protokube.controllers.dns.tell.conditions import TYPE
from protokube.records.owners import Mark


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("dns")
    with bind(folder) as server, real_api(tmp_path_factory.mktemp("api")) as real:
        found = World(real, server, folder)
        found.namespace("default")
        yield found


@pytest.fixture
def controlled(world: World) -> Iterator[World]:
    with world.controller():
        yield world


def test_a_pod_has_its_names_as_long_as_it_lives_and_each_change_is_one_write(controlled: World) -> None:
    world = controlled
    world.node("n1", internal=("10.1.0.1", "10.1.0.2"), external=("192.0.2.1",))
    world.pod("web", "n1", internal="web", external="www")
    world.until_values("www", "192.0.2.1")
    assert world.values("web") == []
    before = world.bind.serial

    world.pod_address("web", "10.1.0.1")
    world.until_values("web", "10.1.0.1")
    assert world.bind.serial == before + 1
    origin = world.real.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    assert world.marks("web") == [Mark(owner=origin, type="A", value="10.1.0.1", by="pod/default/web")]
    assert world.asked_by("www") == ["pod/default/web>node/n1"]

    world.pod_address("web", "10.1.0.2")
    world.until_values("web", "10.1.0.2")
    assert world.bind.serial == before + 2

    pod = f"{PODS.format('default')}/web"
    world.real.api.merge(pod, {"metadata": {"annotations": {f"{ANNOTATION}internal": f"{full('web')},{full('also')}"}}})
    world.until_values("also", "10.1.0.2")
    assert world.bind.serial == before + 3

    world.real.api.merge(pod, {"metadata": {"annotations": {f"{ANNOTATION}internal": full("also")}}})
    world.until_values("web")
    assert world.bind.serial == before + 4
    assert world.marks("web") == []

    world.delete_pod("web")
    world.until_values("also")
    world.until_values("www")
    assert world.marks("also") == world.marks("www") == []


def test_names_lead_to_the_addresses_that_nodes_have_now(controlled: World) -> None:
    world = controlled
    world.node("n2", internal=("10.2.0.1",), external=("192.0.2.20",))
    world.real.api.merge(f"{NODES}/n2", {"metadata": {"annotations": {f"{ANNOTATION}internal": full("n2")}}})
    world.until_values("n2", "10.2.0.1")

    world.addresses("n2", ("10.2.0.9", "fd00::9"), ("192.0.2.20",))
    world.until_values("n2", "10.2.0.9")
    world.until_values("n2", "fd00::9", kind="AAAA")

    world.real.api.delete(f"{NODES}/n2")
    world.until_values("n2")
    world.until_values("n2", kind="AAAA")


def test_a_node_port_is_open_on_every_node_that_is_no_master(controlled: World) -> None:
    world = controlled
    world.node("n3", internal=("10.3.0.1",), external=("192.0.2.31",))
    world.node("n4", internal=("10.3.0.2",), external=("192.0.2.32",))
    world.service("ports", "NodePort", external="ports")
    world.until(lambda: {"192.0.2.31", "192.0.2.32"} <= set(world.values("ports")), "both nodes answer")

    world.real.api.merge(f"{NODES}/n4", {"metadata": {"labels": {"node-role.kubernetes.io/master": ""}}})
    world.until(lambda: "192.0.2.32" not in world.values("ports"), "the master is gone from it")
    assert "192.0.2.31" in world.values("ports")
    assert "service/default/ports>node/n3" in world.asked_by("ports")
    world.real.api.delete(f"{SERVICES.format('default')}/ports")
    world.until_values("ports")


def test_a_load_balancer_gives_its_address_or_its_name(controlled: World) -> None:
    world = controlled
    world.service("shop", "LoadBalancer", external="shop,*.shop")
    world.balanced("shop", {"ip": "192.0.2.40"})
    world.until_values("shop", "192.0.2.40")
    world.until_values("any.shop", "192.0.2.40")

    world.balanced("shop", {"hostname": "balancer.example.net"})
    world.until_values("shop", "balancer.example.net", kind="CNAME")
    assert [mark.type for mark in world.marks("shop")] == ["CNAME"]

    world.real.api.delete(f"{SERVICES.format('default')}/shop")
    world.until_values("shop", kind="CNAME")
    world.until_values("any.shop", kind="CNAME")


def test_what_people_wrote_by_hand_stays(controlled: World) -> None:
    world = controlled
    world.by_hand("mail", "A", "198.51.100.1")
    world.by_hand("mail", "MX", "10 mx.example.net.")
    world.service("mail", "LoadBalancer", external="mail,post")
    world.balanced("mail", {"ip": "192.0.2.50"})
    world.until_values("post", "192.0.2.50")
    assert world.values("mail") == ["198.51.100.1"]
    assert world.marks("mail") == []

    world.real.api.delete(f"{SERVICES.format('default')}/mail")
    world.until_values("post")
    assert world.values("mail") == ["198.51.100.1"]
    assert world.values("mail", "MX") == ["10 mx.example.net"]


def test_pods_say_themselves_what_became_of_their_names(world: World) -> None:
    def said(path: str) -> str:
        conditions = world.real.api.get(path).get("status", {}).get("conditions") or []
        return next((f"{each['status']} {each['message']}" for each in conditions if each["type"] == TYPE), "")

    pod = f"{PODS.format('default')}/telling"
    with world.controller("--conditions"):
        world.node("n9", internal=("10.9.0.1",))
        world.pod("telling", "n9", internal="telling")
        world.until(lambda: said(pod) == f"False {full('telling')}: it has no address yet", "it waits, and says so")
        world.pod_address("telling", "10.9.0.1")
        world.until(lambda: said(pod) == f"True {full('telling')}", "its name is set, and it says so")
        others = world.real.api.get(pod)["status"]["conditions"]
        assert len([each for each in others if each["type"] == TYPE]) == 1
    world.delete_pod("telling")


def test_two_owners_share_a_name_and_either_can_leave(world: World) -> None:
    """As two clusters that write to one zone: each sees only its own objects, and marks only its own values."""
    addresses = {"red": "192.0.2.60", "blue": "192.0.2.61"}
    with ExitStack() as stack:
        for owner, address in addresses.items():
            own = (f"--owner={owner}", f"--watch-namespace={owner}", f"--lease={owner}")
            stack.enter_context(world.controller(*own))
            world.namespace(owner)
            world.service("both", "LoadBalancer", namespace=owner, external=f"both,{owner}")
            world.balanced("both", {"ip": address}, namespace=owner)
        world.until_values("both", *addresses.values())
        assert {mark.owner: mark.value for mark in world.marks("both")} == addresses

        world.real.api.delete(f"{SERVICES.format('red')}/both")
        world.until_values("both", "192.0.2.61")
        world.until_values("red")
        assert [mark.owner for mark in world.marks("both")] == ["blue"]
        assert world.values("blue") == ["192.0.2.61"]
        world.real.api.delete(f"{SERVICES.format('blue')}/both")
        world.until_values("both")


def test_when_the_one_that_writes_is_killed_another_takes_over(world: World) -> None:
    with world.controller() as first:
        first_leads = world.until(world.leader, "somebody leads")
        world.service("over", "LoadBalancer", external="over")
        world.balanced("over", {"ip": "192.0.2.70"})
        world.until_values("over", "192.0.2.70")
        with world.controller() as second:
            world.until(lambda: second.said(f"{first_leads} leads"), "the second one knows who leads")
            first.kill()
            world.balanced("over", {"ip": "192.0.2.71"})
            world.until_values("over", "192.0.2.71")
            assert world.leader() not in ("", first_leads)
            world.real.api.delete(f"{SERVICES.format('default')}/over")
            world.until_values("over")


def test_what_went_while_nobody_looked_leaves_the_zone_after_a_restart(world: World) -> None:
    with world.controller():
        world.service("gone", "LoadBalancer", external="gone")
        world.balanced("gone", {"ip": "192.0.2.80"})
        world.service("stays", "LoadBalancer", external="stays")
        world.balanced("stays", {"ip": "192.0.2.81"})
        world.until_values("gone", "192.0.2.80")
        world.until_values("stays", "192.0.2.81")
    world.real.api.delete(f"{SERVICES.format('default')}/gone")
    assert world.values("gone") == ["192.0.2.80"]
    before = world.bind.serial
    with world.controller():
        world.until_values("gone")
        assert world.marks("gone") == []
        assert world.bind.serial == before + 1
        assert world.values("stays") == ["192.0.2.81"]
        world.real.api.delete(f"{SERVICES.format('default')}/stays")
        world.until_values("stays")
