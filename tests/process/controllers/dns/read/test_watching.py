"""All watches over a real wire: their objects, whether the cache is complete, and the agents' names."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from builders.dns_objects import a_node, a_pod, a_service, an_ingress
from fakes.api_server import ApiServer, api_server, until
from protokube.controllers.backoff import Backoff
from protokube.controllers.dns.read.watching import Watching
from protokube.kube.session import Session
from protokube.records.api import LEASE, LEASE_NAMES

AGENTS = {
    "kind": "Lease",
    "metadata": {"name": LEASE, "namespace": "kube-system", "annotations": {LEASE_NAMES: "api.dev"}},
    "spec": {"renewTime": "2099-01-01T00:00:00Z", "leaseDurationSeconds": 40},
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    with api_server(tmp_path) as found:
        found.put(a_pod("web", internal_names="web.dev"))
        found.put(a_pod("mute"))
        found.put(a_service("web", external_names="web.dev"))
        found.put(an_ingress("web", ["web.dev"]))
        found.put(a_node("n1", internal_names="n1.dev"))
        yield found


@contextmanager
def watching(server: ApiServer, folder: Path, **overrides: object) -> Iterator[Watching]:
    session, stop = Session.open(server.kubeconfig(folder / "kubeconfig")), threading.Event()
    options = {"silence": 30.0, "relist_every": 0.05, "backoff": Backoff(first=0.01, most=0.05)} | overrides
    found = Watching(session, lambda: None, **options)  # type: ignore[arg-type]
    threads = found.start(stop)
    try:
        yield found
    finally:
        stop.set()
        session.close()
        for thread in threads:
            thread.join(20)


def test_every_kind_is_seen_and_only_what_asks_for_something(server: ApiServer, tmp_path: Path) -> None:
    server.fault("away")
    with watching(server, tmp_path) as found:
        assert not found.look().ready
        server.fault()
        until(lambda: found.look().whole, "everything is listed and watched")
        seen = found.look()
        assert sorted(seen.sources) == ["pod/default/web", "service/default/web"]
        assert list(seen.nodes) == ["n1"]
        assert (seen.ready, seen.trouble) == (True, "")


def test_ingresses_are_seen_if_they_are_asked_for(server: ApiServer, tmp_path: Path) -> None:
    with watching(server, tmp_path, ingresses=True) as found:
        until(lambda: "ingress/default/web" in found.look().sources, "the ingress is there")


def test_one_namespace_only(server: ApiServer, tmp_path: Path) -> None:
    pod = a_pod("far", internal_names="far.dev")
    server.put({**pod, "metadata": {**pod["metadata"], "namespace": "far"}})
    with watching(server, tmp_path, namespace="far") as found:
        until(lambda: found.look().whole, "everything is listed and watched")
        assert list(found.look().sources) == ["pod/far/far"]
        assert list(found.look().nodes) == ["n1"], "nodes are of no namespace"


def test_what_happens_is_seen(server: ApiServer, tmp_path: Path) -> None:
    with watching(server, tmp_path) as found:
        until(lambda: found.look().whole, "everything is listed and watched")
        server.put(a_pod("new", internal_names="new.dev"))
        server.remove("pods", "web")
        until(lambda: sorted(found.look().sources) == ["pod/default/new", "service/default/web"], "it is seen")


def test_one_kind_that_cannot_be_listed_is_enough_to_know_that_this_is_not_all(
    server: ApiServer, tmp_path: Path
) -> None:
    with watching(server, tmp_path) as found:
        until(lambda: found.look().whole, "everything is listed and watched")
        server.fault("away")
        until(lambda: not found.look().whole, "nothing is heard any more")
        seen = found.look()
        assert sorted(seen.sources) == ["pod/default/web", "service/default/web"], "what is known stays known"
        assert (seen.ready, bool(seen.trouble)) == (True, True)
        server.fault()
        until(lambda: found.look().whole, "and heard again")


def test_a_list_is_read_again_when_somebody_has_seen_that_it_is_wrong(server: ApiServer, tmp_path: Path) -> None:
    server.fault("half")
    with watching(server, tmp_path) as found:
        until(lambda: found.look().whole, "half of everything is listed")
        assert "pod/default/web" not in found.look().sources, "the first of two is mute"
        server.fault()
        found.relist()
        until(lambda: "pod/default/web" in found.look().sources, "it is there again")


def test_an_object_that_cannot_be_read_hides_no_other_one(server: ApiServer, tmp_path: Path) -> None:
    odd = a_pod("odd", internal_names="odd.dev")
    server.put({**odd, "status": {"podIP": 7}})
    with watching(server, tmp_path) as found:
        until(lambda: found.look().whole, "everything is listed and watched")
        assert "pod/default/web" in found.look().sources
        assert not any(ask for key, each in found.look().sources.items() if "odd" in key for ask in each.asks)


def test_the_names_of_the_agents_are_theirs_whatever_time_their_lease_names(server: ApiServer, tmp_path: Path) -> None:
    server.put(AGENTS)
    with watching(server, tmp_path) as found:
        until(lambda: found.look().whole, "everything is listed and watched")
        assert found.look().agents.reserved == {"api.dev"}
        server.remove("leases", LEASE, "kube-system")
        until(lambda: not found.look().agents.reserved, "nobody says any more that they are theirs")
