"""Three masters that are nodes: their pods reach Services by address, wherever the pod behind it runs, and by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.pods import LABELS, SECONDS, apply, fetched, from_inside, one_on_each, web_process
from helpers_cluster import until
from helpers_kubelet import KubeletCluster

KUBERNETES, DNS = "100.64.0.1", "100.64.0.10"
DOMAIN = "svc.cluster.local"
WITHOUT_A_NAME = """
import http.client, ssl
asked = http.client.HTTPSConnection("100.64.0.1", context=ssl._create_unverified_context(), timeout=5)
asked.request("GET", "/api")
print(asked.getresponse().status)
"""
RESOLVE = """
import socket
try:
    print(socket.getaddrinfo("{}", 80, socket.AF_INET)[0][4][0])
except socket.gaierror as why:
    print("unknown" if why.errno == socket.EAI_NONAME else "no answer")
"""


@pytest.fixture
def cluster() -> Iterator[KubeletCluster]:
    with KubeletCluster() as made:
        yield made.up_with_kubelet(masters=3)


def resolved(pid: int, name: str) -> str:
    return from_inside(pid, RESOLVE.format(name))


def await_name(pid: int, name: str, answer: str) -> None:
    until(lambda: resolved(pid, name) == answer, f"{name} is {answer}", SECONDS, every=0.5)


def await_all(pid: int, pods: set[str]) -> None:
    """Until each of the pods behind `web` has answered once."""
    seen: set[str] = set()

    def asked() -> bool:
        seen.add(fetched(pid, "http://web/hostname"))
        return pods <= seen

    until(asked, f"{', '.join(sorted(pods))} answer", SECONDS)


def test_pods_reach_services_by_address_and_by_name(cluster: KubeletCluster) -> None:
    hosts = [str(each["name"]) for each in cluster.hosts()]
    one, pods = hosts[0], set(one_on_each(cluster))
    web = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    apply(cluster, one, [{**web, "spec": {"selector": LABELS, "ports": [{"port": 80}]}}])
    address = cluster.get(one, "service", "web")["spec"]["clusterIP"]
    inside = [web_process(cluster, host) for host in hosts]
    for pid in inside:
        until(lambda pid=pid: from_inside(pid, WITHOUT_A_NAME) == "401", "an API server answers", SECONDS, every=0.5)  # type: ignore[misc]
        await_name(pid, "kubernetes.default", KUBERNETES)
        await_name(pid, f"kube-dns.kube-system.{DOMAIN}", DNS)
        await_name(pid, "web", address)
        await_all(pid, pods)
    assert cluster.kubectl(one, "delete", "service", "web")
    for pid in inside:
        await_name(pid, f"web.default.{DOMAIN}.", "unknown")
