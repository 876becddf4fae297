"""The dns-controller with its own certificate and exactly the rights of the add-on: all of its work is done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from e2e.dns_zone import World, full
from e2e.real_api import real_api
from fakes.name_servers import bind
from protokube.addons.rbac import DNS_LEASE, DNS_USER, NAMES_LEASE
from protokube.addons.value import ref
from protokube.agent.cluster.names_lease import lease
from protokube.kube.resources import Resources
from protokube.launch.addons import all_addons
from protokube.manifests import kubeconfig
from protokube.store.addons import read_manifest

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Whose login is that of the dns-controller."""
    folder = tmp_path_factory.mktemp("dns")
    with bind(folder) as server, real_api(tmp_path_factory.mktemp("api")) as real:
        found = World(real, server, folder)
        paths = {"ca": "ca.crt", "certificate": "dns-controller.crt", "key": "dns-controller.key"}
        told = {name: str(real.keys / file) for name, file in paths.items()}
        found.login.write_text(kubeconfig.by_files("laptop", real.server, "dns-controller", **told))
        found.namespace("default")
        yield found


def give_rights(world: World) -> None:
    resources = Resources(world.real.api)
    (addon,) = (each for each in all_addons(world.real.config, read_manifest) if each.name == "rbac")
    for tree in addon.labelled():
        world.real.api.apply(resources.path(ref(tree), tree["apiVersion"]), tree, manager="test")


def an_ingress(name: str, host: str) -> dict[str, Any]:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rule = {"host": full(host), "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name},
        "spec": {"rules": [rule]},
    }


def told_of(world: World, service: str) -> list[str]:
    events = world.real.api.get("/api/v1/namespaces/default/events")["items"]
    return [each["message"] for each in events if each["involvedObject"]["name"] == service]


def may(world: World, verb: str, resource: str, **more: str) -> bool:
    asked = {"verb": verb, "resource": resource, **more}
    spec = {"user": DNS_USER, "groups": ["system:authenticated"], "resourceAttributes": asked}
    tree = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec}
    answer = world.real.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", tree)
    return bool(answer["status"]["allowed"])


def test_it_waits_for_its_rights_and_with_them_does_all_of_its_work(world: World) -> None:
    api = world.real.api
    agents = full("theirs")
    api.create(LEASES, lease((agents,), "master-a", 1.0))
    world.node("n1", internal=("10.3.0.1",))
    with world.controller("--watch-ingress") as controller:
        world.until(lambda: controller.said("forbidden"), "it says that it has no rights yet")
        give_rights(world)

        world.pod("web", "n1", "10.3.0.1", internal="web,theirs")
        world.until_values("web", "10.3.0.1")  # pods, nodes, kube-system, and the Lease of the writers
        api.create(INGRESSES, an_ingress("shop", "shop"))
        api.merge(f"{INGRESSES}/shop/status", {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.3"}]}}})
        world.until_values("shop", "192.0.2.3")
        assert world.values("theirs") == []  # it reads the Lease of the agents
        world.service("inside", "ClusterIP", internal="inside")
        world.until(lambda: told_of(world, "inside"), "the owner of a service that gets no name is told by an Event")
        holder = world.leader()
        renewed = api.get(f"{LEASES}/{DNS_LEASE}")["spec"]["renewTime"]
        world.until(lambda: api.get(f"{LEASES}/{DNS_LEASE}")["spec"]["renewTime"] != renewed, "it renews its Lease")
        assert world.leader() == holder

        world.delete_pod("web")  # before a value goes, its object is asked for
        api.delete(f"{INGRESSES}/shop")
        world.until_values("web")
        world.until_values("shop")
        said = controller.log.read_text()
        assert "forbidden" not in said[said.index("we lead") :]


def test_it_may_do_nothing_else(world: World) -> None:
    give_rights(world)
    group = "coordination.k8s.io"
    # the server hears of new roles a moment after it took them
    world.until(lambda: may(world, "update", "leases", group=group, namespace="kube-system", name=DNS_LEASE), "its own")
    world.until(lambda: may(world, "watch", "leases", group=group, namespace="kube-system", name=NAMES_LEASE), "theirs")
    world.until(lambda: may(world, "create", "events", namespace="default"), "it may tell")
    assert may(world, "get", "endpoints", namespace="default", name="kubernetes")

    assert not may(world, "update", "leases", group=group, namespace="kube-system", name=NAMES_LEASE)
    assert not may(world, "list", "leases", group=group, namespace="kube-system")
    assert not may(world, "create", "leases", group=group, namespace="default")
    assert not may(world, "get", "namespaces", name="default")
    assert not may(world, "list", "endpoints", namespace="default")
    assert not may(world, "get", "secrets", namespace="kube-system")
    for resource in ("pods", "services", "nodes"):
        assert not may(world, "patch", resource, namespace="default")
