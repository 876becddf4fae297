"""What pods, services and ingresses ask for."""

from __future__ import annotations

import pytest

from builders.dns_objects import (
    LATER,
    Document,
    a_node,
    a_pod,
    a_service,
    a_source,
    a_target,
    an_ingress,
    lines,
    source_of,
)
from protokube.controllers.dns import Ask, HostAddress, NodeAlias, Value
from protokube.controllers.dns.decide.desired import desired


def wants(document: Document, *nodes: Document) -> list[str]:
    return lines(desired([a_source(document)], [a_target(node) for node in nodes]).wants)


def test_an_object_without_annotations_leaves_nothing_behind() -> None:
    for document in (
        a_pod(),
        a_service(),
        an_ingress(),
        a_node(),
        a_pod(external_names=""),
        a_pod(internal_names=" ,"),
    ):
        assert source_of(document) is None


def test_a_pod_on_the_host_network_asks_for_its_own_addresses_inside() -> None:
    pod = a_pod(addresses=["10.0.0.1", "fd00::1"], internal_names="web.example.com")

    assert a_source(pod).asks == (
        Ask(name="web.example.com", view="internal", target=HostAddress("A", "10.0.0.1", "n1")),
        Ask(name="web.example.com", view="internal", target=HostAddress("AAAA", "fd00::1", "n1")),
    )


def test_a_pod_on_the_host_network_asks_for_its_nodes_addresses_outside() -> None:
    pod = a_pod(external_names="web.example.com", node="n7")

    assert a_source(pod).asks == (
        Ask(name="web.example.com", view="external", target=NodeAlias("name", "n7", "external")),
    )


def test_names_are_trimmed_folded_and_taken_once() -> None:
    pod = a_pod(internal_names=" Web.Example.com. ,web.example.com,, *.example.com")

    assert [ask.name for ask in a_source(pod).asks] == ["web.example.com", "*.example.com"]


def test_a_pod_on_a_network_of_its_own_is_told_that_no_name_can_lead_to_it() -> None:
    source = a_source(a_pod(host_network=False, internal_names="web.example.com"))

    assert not source.asks
    assert "hostNetwork" in source.wrong[0]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_asks_for_nothing(phase: str) -> None:
    assert source_of(a_pod(phase=phase, internal_names="web.example.com", external_names="web.example.com")) is None


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_a_pod_that_is_not_finished_counts_ready_or_not(phase: str) -> None:
    assert wants(a_pod(phase=phase, internal_names="web.example.com")) == ["web.example.com A 10.0.0.1 pod/default/web"]


def test_what_is_being_deleted_asks_for_nothing_any_more() -> None:
    point = {"ip": "192.0.2.1"}
    for document in (
        a_pod(internal_names="web.example.com", deleted=LATER),
        a_service("web", "LoadBalancer", point, external_names="web.example.com", deleted=LATER),
        an_ingress("web", ["web.example.com"], point, deleted=LATER),
    ):
        assert source_of(document) is None


def test_a_pod_without_node_or_address_asks_and_has_nothing_to_answer_with_yet() -> None:
    for pod in (
        a_pod(node="", addresses=(), internal_names="web.example.com"),
        a_pod(addresses=(), internal_names="web.example.com"),
    ):
        source = a_source(pod)
        assert [(ask.name, ask.target) for ask in source.asks] == [("web.example.com", None)]
        assert not source.wrong


def test_a_balancers_addresses_are_given_in_both_views() -> None:
    service = a_service(
        "web",
        "LoadBalancer",
        {"ip": "192.0.2.1"},
        {"ip": "2001:DB8::1"},
        internal_names="in.example.com",
        external_names="out.example.com",
    )

    assert wants(service) == [
        "in.example.com A 192.0.2.1 service/default/web",
        "in.example.com AAAA 2001:db8::1 service/default/web",
        "out.example.com A 192.0.2.1 service/default/web",
        "out.example.com AAAA 2001:db8::1 service/default/web",
    ]


def test_a_balancers_host_name_becomes_a_cname() -> None:
    service = a_service("web", "LoadBalancer", {"hostname": "LB.example.net."}, external_names="web.example.com")

    assert a_source(service).asks == (
        Ask(name="web.example.com", view="external", target=Value("CNAME", "lb.example.net")),
    )


def test_where_a_balancer_has_addresses_its_host_names_are_left_out() -> None:
    points = [{"hostname": "lb.example.net", "ip": "192.0.2.1"}, {"hostname": "lb2.example.net"}]

    assert wants(a_service("web", "LoadBalancer", *points, external_names="web.example.com")) == [
        "web.example.com A 192.0.2.1 service/default/web"
    ]


def test_an_address_in_the_place_of_a_host_name_is_an_address() -> None:
    assert wants(a_service("web", "LoadBalancer", {"hostname": "192.0.2.1"}, external_names="web.example.com")) == [
        "web.example.com A 192.0.2.1 service/default/web"
    ]


@pytest.mark.parametrize("host", ["*.example.net", "a b", "x" * 64 + ".example.net", "web.example.com"])
def test_a_host_name_that_no_cname_can_hold_is_told(host: str) -> None:
    source = a_source(a_service("web", "LoadBalancer", {"hostname": host}, external_names="web.example.com"))

    assert [ask.target for ask in source.asks] == [None]
    assert len(source.wrong) == 1


def test_a_balancer_that_is_not_there_yet_is_no_fault() -> None:
    source = a_source(a_service(external_names="web.example.com"))

    assert [ask.target for ask in source.asks] == [None]
    assert not source.wrong


def test_a_node_port_with_both_annotations_gets_each_views_addresses() -> None:
    """The original gave nothing at all here."""
    service = a_service("web", "NodePort", internal_names="in.example.com", external_names="out.example.com")

    assert wants(service, a_node(internal=["10.0.0.1"], external=["192.0.2.1"])) == [
        "in.example.com A 10.0.0.1 service/default/web>node/n1",
        "out.example.com A 192.0.2.1 service/default/web>node/n1",
    ]


@pytest.mark.parametrize("kind", ["ClusterIP", "ExternalName", "Something\x1b[31m"])
def test_any_other_service_is_told_why_it_gets_nothing(kind: str) -> None:
    source = a_source(a_service("web", kind, {"ip": "192.0.2.1"}, external_names="web.example.com"))

    assert not source.asks
    assert source.wrong[0].isprintable()
    assert "LoadBalancer or NodePort" in source.wrong[0]


def test_every_host_of_an_ingress_leads_to_its_balancer() -> None:
    hosts = ["a.example.com", "", "*.example.com", "a.example.com"]

    assert wants(an_ingress("web", hosts, {"ip": "192.0.2.1"})) == [
        "*.example.com A 192.0.2.1 ingress/default/web",
        "a.example.com A 192.0.2.1 ingress/default/web",
    ]


def test_an_ingress_is_told_that_its_annotations_are_not_read() -> None:
    source = a_source(an_ingress("web", ["a.example.com"], {"ip": "192.0.2.1"}, external_names="b.example.com"))

    assert [ask.name for ask in source.asks] == ["a.example.com"]
    assert "not read on an ingress" in source.wrong[0]


@pytest.mark.parametrize(
    "address", ["0.0.0.0", "127.0.0.1", "169.254.1.1", "224.0.0.1", "::", "::1", "fe80::1", "ff02::1", "no address"]
)
def test_an_address_that_nobody_else_can_reach_is_left_out_and_told(address: str) -> None:
    pod = a_source(a_pod(addresses=["10.0.0.1", address], internal_names="web.example.com"))
    service = a_source(a_service("web", "LoadBalancer", {"ip": address}, external_names="web.example.com"))

    assert [ask.target for ask in pod.asks] == [HostAddress("A", "10.0.0.1", "n1")]
    assert [ask.target for ask in service.asks] == [None]
    assert [address in source.wrong[0] for source in (pod, service)] == [True, True]
