"""Where exposed Services are served, asked of a real TLS server."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.kube_server import KubeServer, kube_server
from protokube.errors import NotFound, Refused, TryLater
from protokube.kube.services import read_name
from protokube.local.base.paths import Paths
from protokube.local.cloud.endpoints import ASK_SECONDS, Endpoints

SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
WEB = read_name("web:80")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KubeServer]:
    with kube_server(tmp_path) as found:
        yield found


@pytest.fixture
def paths(server: KubeServer, tmp_path: Path) -> Paths:
    made = Paths.at(tmp_path / "one")
    made.create()
    made.client.mkdir()
    for name, source in (
        ("kubernetes-ca.crt", "ca.crt"),
        ("kubernetes.crt", "client.crt"),
        ("kubernetes.key", "client.key"),
    ):
        shutil.copy(server.pki / source, made.client / name)
    (made.client / "api-server").write_text(f"{server.url}\n")
    return made


def serve(server: KubeServer, *addresses: str) -> None:
    ports = [{"name": "", "port": 80, "protocol": "TCP"}]
    server.kube.apply(f"{SERVICES}/web", an_object("Service", "web", spec={"ports": ports}), manager="test")
    found = {"addressType": "IPv4", "ports": [{"name": "", "port": 8080}], "endpoints": [{"addresses": [*addresses]}]}
    server.kube.apply(f"{SLICES}/web-1", an_object("EndpointSlice", "web-1", **found), manager="test")


def an_object(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **fields}


def test_endpoints_are_asked_again_after_a_second_and_not_before(server: KubeServer, paths: Paths) -> None:
    endpoints = Endpoints(paths)
    serve(server, "100.96.0.2")
    assert list(endpoints.find(WEB)) == [("100.96.0.2", 8080)]
    asked = len(server.seen)
    assert list(endpoints.find(WEB)) == [("100.96.0.2", 8080)]
    assert len(server.seen) == asked

    serve(server, "100.96.0.3", "100.96.0.4")
    endpoints.fresh = 0.0
    assert list(endpoints.find(WEB)) == [("100.96.0.3", 8080), ("100.96.0.4", 8080)]


def test_while_no_api_server_answers_the_last_endpoints_are_used(server: KubeServer, paths: Paths) -> None:
    endpoints = Endpoints(paths)
    serve(server, "100.96.0.2")
    endpoints.find(WEB)
    endpoints.fresh = 0.0
    server.hang_up = 1000

    assert list(endpoints.find(WEB)) == [("100.96.0.2", 8080)]
    with pytest.raises(TryLater):
        Endpoints(paths).find(WEB)


def test_an_api_server_that_hangs_costs_its_patience_once_for_all_who_ask(server: KubeServer, paths: Paths) -> None:
    endpoints = Endpoints(paths)
    serve(server, "100.96.0.2")
    endpoints.find(WEB)
    asked = len(server.seen)
    server.hang_up = 1000
    endpoints.fresh = 0.0
    endpoints.find(WEB)
    endpoints.fresh = 60.0
    missed = len(server.seen) - asked
    for _ in range(20):
        endpoints.find(WEB)

    assert len(server.seen) - asked == missed > 0


def test_a_service_that_is_gone_is_not_served_from_memory(server: KubeServer, paths: Paths) -> None:
    endpoints = Endpoints(paths)
    serve(server, "100.96.0.2")
    endpoints.find(WEB)
    server.kube.delete(f"{SERVICES}/web")
    server.kube.apply(f"{SERVICES}/other", an_object("Service", "other"), manager="test")
    server.kube.apply("/api/v1/namespaces/default", an_object("Namespace", "default"), manager="test")
    endpoints.fresh = 0.0

    with pytest.raises(NotFound, match="no Service 'web'"):
        endpoints.find(WEB)


def test_a_cluster_without_kubernetes_says_so_at_once(paths: Paths) -> None:
    (paths.client / "api-server").unlink()
    began = time.monotonic()

    with pytest.raises(Refused, match="has no Kubernetes"):
        Endpoints(paths).find(WEB)
    assert time.monotonic() - began < ASK_SECONDS


def test_an_api_server_that_never_answered_is_asked_once_for_all_who_ask(server: KubeServer, paths: Paths) -> None:
    server.hang_up = 1000
    endpoints = Endpoints(paths, fresh=60.0)

    for _ in range(20):
        with pytest.raises(TryLater):
            endpoints.find(WEB)

    once = len(server.seen)
    with pytest.raises(TryLater):
        Endpoints(paths).find(WEB)
    assert len(server.seen) == 2 * once


def test_a_service_that_was_gone_stays_gone_while_no_api_server_answers(server: KubeServer, paths: Paths) -> None:
    endpoints = Endpoints(paths, fresh=0.0)
    serve(server, "100.96.0.2")
    endpoints.find(WEB)
    server.kube.delete(f"{SERVICES}/web")
    server.kube.apply(f"{SERVICES}/other", an_object("Service", "other"), manager="test")
    server.kube.apply("/api/v1/namespaces/default", an_object("Namespace", "default"), manager="test")
    with pytest.raises(NotFound):
        endpoints.find(WEB)
    server.hang_up = 1000

    with pytest.raises(NotFound):
        endpoints.find(WEB)
