"""From bytes to what the cache keeps; an object that cannot be decoded does not affect the others."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.dns_objects import Document, a_node, a_pod, a_service, an_ingress
from protokube.controllers.dns import HostAddress, Source
from protokube.controllers.dns.read.reading import read_ingress, read_node, read_pod, read_service


def unreadable(source: Source | None) -> bool:
    return source is not None and any("cannot be read" in why for why in source.wrong)


def test_a_pod_is_read_and_what_it_asks_for_is_kept() -> None:
    found = read_pod(json.dumps(a_pod(internal_names="web.example.com")).encode())

    assert found is not None
    assert (found.key, found.uid, found.created) == ("pod/default/web", "uid-web", "2026-01-01T00:00:00Z")
    assert found.asks[0].target == HostAddress("A", "10.0.0.1", "n1")


def test_of_a_pod_that_asks_for_nothing_nothing_is_kept() -> None:
    assert read_pod(json.dumps(a_pod()).encode()) is None


@pytest.mark.parametrize("bare", [{}, {"spec": None, "status": None}, {"spec": {}, "status": {}}])
def test_nothing_that_may_be_missing_or_null_is_a_fault(bare: Document) -> None:
    annotations = {"dns.alpha.kubernetes.io/external": "web.example.com"}
    content = json.dumps({"metadata": {"name": "x", "annotations": annotations}} | bare).encode()

    kept = [read_pod(content), read_service(content), read_ingress(content)]
    assert not any(unreadable(source) for source in kept)
    node = read_node(content)
    assert node is not None
    assert node.internal == ()
    assert node.source is not None
    assert not unreadable(node.source)


def test_null_in_place_of_every_list_is_an_empty_list() -> None:
    meta = {"name": "x", "namespace": "y", "annotations": {"dns.alpha.kubernetes.io/external": "web.example.com"}}
    for read, body in (
        (read_service, {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": None}}}),
        (read_service, {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": None}}),
        (read_ingress, {"spec": {"rules": None}}),
        (read_pod, {"spec": {"hostNetwork": True, "nodeName": "n1"}, "status": {"podIPs": None}}),
    ):
        found = read(json.dumps({"metadata": meta} | body).encode())
        assert found is not None
        assert not unreadable(found)


@pytest.mark.parametrize(
    "wrong",
    [
        {"spec": {"hostNetwork": "yes"}},
        {"status": {"podIPs": "10.0.0.1"}},
        {"metadata": {"name": "web", "namespace": "default", "annotations": ["x"]}},
        {"metadata": {"name": "web", "namespace": "default", "annotations": {"dns.alpha.kubernetes.io/external": 7}}},
    ],
)
def test_an_object_that_cannot_be_read_is_kept_by_name_and_told(wrong: Document) -> None:
    found = read_pod(json.dumps(a_pod(internal_names="web.example.com") | wrong).encode())

    assert found is not None
    assert (found.key, found.asks) == ("pod/default/web", ())
    assert unreadable(found)


def test_a_node_that_cannot_be_read_is_there_without_addresses() -> None:
    found = read_node(json.dumps(a_node() | {"status": {"addresses": 7}}).encode())

    assert found is not None
    assert (found.name, found.internal, found.external) == ("n1", (), ())
    assert unreadable(found.source)


def test_what_has_no_name_is_no_object() -> None:
    for content in (b"{}", b"[]", b"null", b'{"metadata": {}}', b'{"metadata": {"name": "x"', b""):
        with pytest.raises(msgspec.DecodeError):
            read_pod(content)


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.just("10.0.0.1")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(
        ["ip", "hostname", "ingress", "loadBalancer", "rules", "host", "type", "phase", "podIP", "podIPs", "addresses",
         "hostNetwork", "nodeName", "address"]
    ), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(annotations=anything, spec=anything, status=anything)
def test_whatever_an_object_holds_reading_it_ends_well(annotations: object, spec: object, status: object) -> None:
    meta = {"name": "x", "namespace": "y", "annotations": annotations}
    content = json.dumps({"metadata": meta, "spec": spec, "status": status}).encode()

    for read in (read_pod, read_service, read_ingress):
        found = read(content)
        assert found is None or found.key.endswith("/y/x")
    assert read_node(content) is not None


def test_the_same_ingress_is_read_from_every_version_of_its_kind() -> None:
    old = an_ingress("web", ["a.example.com"], {"ip": "192.0.2.1"})
    old["spec"]["rules"][0]["http"] = {"paths": [{"backend": {"serviceName": "web", "servicePort": 80}}]}
    new = an_ingress("web", ["a.example.com"], {"ip": "192.0.2.1"})
    new["spec"]["rules"][0]["http"] = {"paths": [{"backend": {"service": {"name": "web", "port": {"number": 80}}}}]}

    assert read_ingress(json.dumps(old).encode()) == read_ingress(json.dumps(new).encode()) is not None


def test_services_are_read_like_pods() -> None:
    content = json.dumps(a_service("web", "LoadBalancer", {"ip": "192.0.2.1"}, external_names="a.example.com")).encode()

    found = read_service(content)
    assert found is not None
    assert [ask.name for ask in found.asks] == ["a.example.com"]
