"""Everything that can ask for a name, listed once over a real connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from builders.dns_objects import a_node, a_pod, a_service, an_ingress
from fakes.object_api import DnsApi, dns_api
from protokube.controllers.dns.read.listing import agents_names, list_objects
from protokube.controllers.dns.read.watching import CORE, LEASES
from protokube.errors import TryLater
from protokube.kube.client import ApiError
from protokube.kube.session import Session
from protokube.records.api import LEASE, LEASE_NAMES


@pytest.fixture
def api() -> Iterator[DnsApi]:
    with dns_api() as found:
        yield found


@pytest.fixture
def session(api: DnsApi, tmp_path: Path) -> Iterator[Session]:
    with closing(Session.open(api.kubeconfig(tmp_path))) as found:
        yield found


def test_all_pages_of_all_kinds_are_read_and_who_names_nothing_is_forgotten(api: DnsApi, session: Session) -> None:
    api.add(*(a_pod(f"p{number}", internal_names="web.example.com") for number in range(7)))
    api.add(a_pod("silent"), a_service(external_names="web.example.com"), a_node(), an_ingress("i", ("x.example.com",)))
    found = list_objects(session, ingresses=True)

    kinds = [type(each).__name__ for each in found]
    assert {kind: kinds.count(kind) for kind in kinds} == {"Pod": 7, "Service": 1, "Node": 1, "Ingress": 1}
    assert "Ingress" not in {type(each).__name__ for each in list_objects(session)}


def test_only_one_namespace_is_read_if_only_one_is_watched(api: DnsApi, session: Session) -> None:
    api.add(a_pod(internal_names="web.example.com"), a_node())

    assert len(list_objects(session, namespace="default")) == 2
    assert len(list_objects(session, namespace="other")) == 1, "nodes have no namespace"


def test_an_object_that_cannot_be_read_does_not_hide_the_others(api: DnsApi, session: Session) -> None:
    odd = a_pod("odd", internal_names="web.example.com")
    odd["spec"] = "what"
    api.add(odd, a_pod("fine", internal_names="web.example.com"))

    assert [each.metadata.name for each in list_objects(session)] == ["fine"]


@pytest.mark.parametrize(("status", "error"), [(410, TryLater), (503, TryLater), (403, ApiError)])
def test_half_a_list_is_no_list(api: DnsApi, session: Session, status: int, error: type[Exception]) -> None:
    api.refuse[f"{CORE}/services"] = status

    with pytest.raises(error):
        list_objects(session)


def test_the_names_of_the_agents_are_those_that_their_lease_says(api: DnsApi, session: Session) -> None:
    assert agents_names(session).reserved == frozenset()
    lease = {"metadata": {"name": LEASE, "annotations": {LEASE_NAMES: "api.example.com, api.internal.example.com"}}}
    api.put(f"{LEASES}/{LEASE}", lease)

    assert agents_names(session).reserved == {"api.example.com", "api.internal.example.com"}


def test_a_lease_that_cannot_be_read_is_not_taken_for_none(api: DnsApi, session: Session) -> None:
    api.put(f"{LEASES}/{LEASE}", {"metadata": {"name": LEASE, "annotations": 7}})
    with pytest.raises(TryLater, match="cannot be read"):
        agents_names(session)
    api.refuse[f"{LEASES}/{LEASE}"] = 403

    with pytest.raises(ApiError):
        agents_names(session)
