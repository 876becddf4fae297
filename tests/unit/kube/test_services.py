"""Which port of which Service is meant, and where connections to it go."""

from __future__ import annotations

from typing import Any

import pytest

from protokube.errors import InvalidRequest, NotFound
from protokube.kube.services import ServiceName, choose_port, endpoints, read_name


def a_service(*ports: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {"ports": list(ports), **spec}}


HTTP, METRICS = {"name": "http", "port": 80, "protocol": "TCP"}, {"name": "metrics", "port": 9090}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("web", ServiceName("default", "web", "")),
        ("web:80", ServiceName("default", "web", "80")),
        ("shop/web:http", ServiceName("shop", "web", "http")),
        ("1/web-2", ServiceName("1", "web-2", "")),
    ],
)
def test_a_service_is_named_with_its_namespace_and_its_port(text: str, name: ServiceName) -> None:
    assert read_name(text) == name


@pytest.mark.parametrize(
    "text",
    ["", ":80", "web:", "web:0", "web:65536", "web:99999999", "a/b/c", "/web", "web/", "Web", "web:8 0", "web:80:90",
     "-web", "w\u00e9b", "web:\u0661", "80", "default/8080", "x" * 64, "web\n"],
)  # fmt: skip
def test_what_names_no_service_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read_name(text)


def test_the_only_port_need_not_be_named_and_any_can_be_by_number_or_name() -> None:
    assert choose_port(a_service(HTTP), read_name("web")) == HTTP
    assert choose_port(a_service(HTTP, METRICS), read_name("web:9090")) == METRICS
    assert choose_port(a_service(HTTP, METRICS), read_name("web:http")) == HTTP


def test_of_several_ports_one_is_named_in_the_hint() -> None:
    with pytest.raises(InvalidRequest) as caught:
        choose_port(a_service(HTTP, METRICS), read_name("shop/web"))

    assert (caught.value.saw, caught.value.hint) == ("80 (http), 9090 (metrics)", "shop/web:80")


def test_a_port_that_is_not_there_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(NotFound) as caught:
        choose_port(a_service(HTTP, METRICS), read_name("web:metric"))

    assert caught.value.hint == "did you mean `metrics`?"


def test_an_alias_and_a_service_of_udp_alone_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="alias"):
        choose_port(a_service(type="ExternalName", externalName="example.com"), read_name("web"))
    with pytest.raises(InvalidRequest, match="no TCP port"):
        choose_port(a_service({"port": 53, "protocol": "UDP"}), read_name("web"))


def test_a_port_of_another_protocol_is_refused_as_such_and_not_as_a_wrong_name() -> None:
    dns, reliable = {"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}

    with pytest.raises(InvalidRequest) as caught:
        choose_port(a_service(dns, reliable), read_name("kube-system/kube-dns:dns"))
    assert caught.value.message == "port dns of kube-system/kube-dns is a port of UDP"
    assert choose_port(a_service(dns, reliable), read_name("kube-system/kube-dns:53")) == reliable

    with pytest.raises(InvalidRequest) as caught:
        choose_port(a_service(dns), read_name("kube-dns"))
    assert (caught.value.saw, caught.value.want) == ("53 UDP (dns)", "TCP; other protocols are not forwarded")


def test_connections_go_to_ready_endpoints_of_that_port_alone() -> None:
    def a_slice(name: str, number: int, *found: tuple[str, Any], kind: str = "IPv4") -> dict[str, Any]:
        ready = [
            {"addresses": [address], "conditions": {} if state is None else {"ready": state}}
            for address, state in found
        ]
        return {"addressType": kind, "ports": [{"name": name, "port": number}], "endpoints": ready}

    slices = {
        "items": [
            a_slice("http", 8080, ("100.96.0.2", True), ("100.96.0.3", False)),
            a_slice("http", 8081, ("100.96.1.2", None)),
            a_slice("metrics", 9090, ("100.96.0.2", True)),
            a_slice("http", 8080, ("fd00::2", True), kind="IPv6"),
            {"addressType": "IPv4", "ports": None, "endpoints": None},
        ]
    }

    assert endpoints(slices, HTTP) == [("100.96.0.2", 8080), ("100.96.1.2", 8081)]
    assert endpoints({"items": None}, HTTP) == []
