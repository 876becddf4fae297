"""Three masters that are nodes: pods and hosts reach Services, through the loss of an API server and of a machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clusters.kubelet import KubeletCluster
from clusters.real import until
from e2e.pods import LABELS, SECONDS, apply, fetched, from_inside, one_on_each, outside, web_process
from protokube.binaries.coredns import COREDNS
from protokube.local.bringup import CACHE

KUBERNETES, DNS = "100.64.0.1", "100.64.0.10"
DOMAIN = "svc.cluster.local"
EXPOSED = "exposed"
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


@pytest.fixture(scope="module")
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


def await_from_host(cluster: KubeletCluster, host: str, address: str, pods: set[str]) -> None:
    """Until the host itself, as a pod in its network would, reaches one of the pods behind a Service."""
    fetch = (
        f"import urllib.request; print(urllib.request.urlopen('http://{address}/hostname', timeout=5).read().decode())"
    )
    until(
        lambda: cluster.inside(host, "python3", "-c", fetch).stdout.strip() in pods,
        f"{host} reaches {address}",
        SECONDS,
        every=0.5,
    )


@contextmanager
def frozen_api_server(cluster: KubeletCluster, host: str) -> Iterator[None]:
    """It listens, and says nothing."""
    _, inside = cluster.containers(host)["kube-apiserver"]
    pid = outside(cluster, host, inside)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def a_service(name: str) -> dict[str, object]:
    spec = {"selector": LABELS, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def test_pods_and_hosts_reach_services_by_address_and_pods_by_name(cluster: KubeletCluster) -> None:
    hosts = [str(each["name"]) for each in cluster.hosts()]
    one, pods = hosts[0], set(one_on_each(cluster))
    apply(cluster, one, [a_service("web")])
    address = cluster.get(one, "service", "web")["spec"]["clusterIP"]
    for host in hosts:
        await_from_host(cluster, host, address, pods)
    inside = [web_process(cluster, host) for host in hosts]
    for host in hosts:
        until(
            lambda host=host: cluster.inside(host, "python3", "-c", WITHOUT_A_NAME).stdout.strip() == "401",  # type: ignore[misc]
            "a host reaches the API by the Service's address, too", SECONDS, every=0.5,
        )  # fmt: skip
    for pid in inside:
        until(lambda pid=pid: from_inside(pid, WITHOUT_A_NAME) == "401", "an API server answers", SECONDS, every=0.5)  # type: ignore[misc]
        await_name(pid, "kubernetes.default", KUBERNETES)
        await_name(pid, f"kube-dns.kube-system.{DOMAIN}", DNS)
        await_name(pid, "web", address)
        await_all(pid, pods)
    assert cluster.kubectl(one, "delete", "service", "web")
    for pid in inside:
        await_name(pid, f"web.default.{DOMAIN}.", "unknown")


def test_coredns_tells_pods_all_that_the_specification_of_cluster_dns_asks_for(cluster: KubeletCluster) -> None:
    """A Service without an address has those of its pods, its ports have SRV records, a pod has a name by its address.

    Where CoreDNS is not to be had a stand-in runs, and `up` said so: it knows none of these.
    """
    one = str(cluster.hosts()[0]["name"])
    addresses = set(one_on_each(cluster).values())
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    headless = {"metadata": {"name": "peers"}, "spec": {"clusterIP": "None", "selector": LABELS, "ports": ports}}
    apply(cluster, one, [{"apiVersion": "v1", "kind": "Service", **headless}])
    pid = web_process(cluster, one)
    if COREDNS.find(None, CACHE) is None:
        assert records(pid, "A", f"peers.default.{DOMAIN}") == set()
        return

    until(
        lambda: records(pid, "A", f"peers.default.{DOMAIN}") == addresses,
        "a Service without an address has those of its pods", SECONDS, every=0.5,
    )  # fmt: skip
    answers = records(pid, "SRV", f"_http._tcp.peers.default.{DOMAIN}")
    assert {answer.split()[2] for answer in answers} == {"80"}
    assert {address for answer in answers for address in records(pid, "A", answer.split()[3])} == addresses
    for address in addresses:
        name = f"{address.replace('.', '-')}.default.pod.cluster.local"
        assert records(pid, "A", name) == {address}
    assert records(pid, "PTR", "1.0.64.100.in-addr.arpa") == {f"kubernetes.default.{DOMAIN}."}
    assert records(pid, "A", f"nobody.default.{DOMAIN}") == set()
    assert cluster.kubectl(one, "delete", "service", "peers")


def records(pid: int, kind: str, name: str) -> set[str]:
    """What a pod is told; nothing where the name has no such record."""
    asked = f"""
import dns.resolver
try:
    print(*(each.to_text() for each in dns.resolver.resolve("{name}", "{kind}", search=False)), sep="\\n")
except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
    pass
"""
    return set(from_inside(pid, asked, sys.executable).splitlines())


def test_an_exposed_service_is_reached_from_this_machine_also_after_the_daemon_was_killed(
    cluster: KubeletCluster,
) -> None:
    one, pods = str(cluster.hosts()[0]["name"]), set(one_on_each(cluster))
    mistyped = cluster.run("expose", "exposd", "--cluster", cluster.name, "--output", "json")
    assert (mistyped.code, json.loads(mistyped.err)["code"]) == (2, "not-found")
    apply(cluster, one, [a_service(EXPOSED)])
    said = cluster.run("expose", EXPOSED, "--cluster", cluster.name, "--output", "json")
    assert said.code == 0, said.err
    made = json.loads(said.out)
    assert (made["address"], made["service"], made["port"]) == ("127.0.0.1", EXPOSED, "80")
    assert made["localPort"] >= 1024
    await_exposed(made["localPort"], pods)
    refused = cluster.run(
        "expose", "kubernetes", "--port", str(made["localPort"]), "--cluster", cluster.name, "-o", "json"
    )
    assert (refused.code, json.loads(refused.err)["code"]) == (4, "taken")

    os.kill(int(cluster.paths.pid_file.read_text()), signal.SIGKILL)
    start = "import sys; from pathlib import Path; from protokube.local.base.paths import Paths; "
    start += "from protokube.local.bringup import start_daemon; start_daemon(Paths.at(Path(sys.argv[1])))"
    subprocess.run([sys.executable, "-c", start, cluster.paths.root], check=True, timeout=SECONDS)
    await_exposed(made["localPort"], pods)
    assert cluster.status()["exposed"] == [made]


def await_exposed(port: int, pods: set[str]) -> None:
    """Until each pod behind it has answered on this machine."""
    seen: set[str] = set()

    def asked() -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/hostname", timeout=5) as answer:
            seen.add(answer.read().decode().strip())
        return pods <= seen

    until(asked, f"{', '.join(sorted(pods))} answer", SECONDS, every=0.2)


def test_a_service_made_while_the_api_server_of_a_machine_hangs_is_reached_from_that_machine(
    cluster: KubeletCluster,
) -> None:
    hosts = [str(each["name"]) for each in cluster.hosts()]
    cut_off, other = hosts[0], hosts[1]
    pods = set(one_on_each(cluster))
    with frozen_api_server(cluster, cut_off):
        until(lambda: cluster.get(other, "nodes")["items"], "the others answer", SECONDS, every=0.5)
        apply(cluster, other, [a_service("later")])
        address = cluster.get(other, "service", "later")["spec"]["clusterIP"]
        await_from_host(cluster, cut_off, address, pods)
    cluster.until_ready(300)


def test_the_node_of_a_killed_master_goes_and_that_of_its_successor_becomes_ready(cluster: KubeletCluster) -> None:
    before = {str(each["name"]) for each in cluster.hosts()}
    cluster.until_ready(300)
    said = cluster.run(
        "drill", "kill-master", "--cluster", cluster.name, "--timeout", "300s", "--output", "json", seconds=500
    )
    assert said.code == 0, said.err + said.out
    writes = json.loads(said.out)["apiWrites"]
    assert writes["readBack"] == writes["acknowledged"] > 10
    after = {str(each["name"]) for each in cluster.hosts()}
    (gone,), (new,) = before - after, after - before
    one = min(before & after)
    (exposed,) = cluster.status()["exposed"]
    await_exposed(exposed["localPort"], {f"on-{each}" for each in before & after})

    until(lambda: cluster.node_is_ready(one, new), f"the node {new} is ready", SECONDS, every=0.5)
    until(lambda: nodes(cluster, one) == after, f"the Node {gone} is gone", SECONDS, every=1.0)


def nodes(cluster: KubeletCluster, host: str) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.get(host, "nodes")["items"]}
