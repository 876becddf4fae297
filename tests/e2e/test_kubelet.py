"""The real kubelet on containerd in a host of the local cloud runs what our manifests say, and becomes a node."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers_cluster import until
from helpers_kubelet import KubeletCluster
from protokube.local import cgroups
from protokube.local.kubelet import TUNABLES

SECONDS = 240.0
ETCD, SERVER = "etcd-container", "kube-apiserver"


def tunables() -> dict[str, str]:
    """Of this machine, not of a host."""
    places = {name: Path("/proc/sys") / name for name in TUNABLES}
    return {name: place.read_text() for name, place in places.items() if place.exists()}


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubeletCluster]:
    before = tunables()
    with KubeletCluster() as made:
        made.up_with_kubelet()
        until(lambda: made.node_is_ready(host_of(made)), "the node is ready", SECONDS, every=0.5)
        yield made
        assert cgroups.left(cgroups.name(made.paths.switch))
    assert not cgroups.left(cgroups.name(made.paths.switch))
    assert tunables() == before


@pytest.fixture
def host(cluster: KubeletCluster) -> str:
    return host_of(cluster)


def host_of(cluster: KubeletCluster) -> str:
    return str(cluster.hosts()[0]["name"])


@contextmanager
def stopped_agent(cluster: KubeletCluster, host: str) -> Iterator[None]:
    """It would mend what a test breaks."""
    pid = int(cluster.inside(host, "pgrep", "--oldest", "--full", "protokube agent").stdout)
    cluster.inside(host, "kill", "-STOP", str(pid))
    try:
        yield
    finally:
        cluster.inside(host, "kill", "-CONT", str(pid))


def a_pod(name: str, node: str) -> str:
    """Serves its own name on port 80; put on its node by us, so that no scheduler is needed."""
    command = ["/busybox", "httpd", "-f", "-p", "80", "-h", "/etc"]
    container = {"name": "web", "image": "registry.k8s.io/pause:3.2", "command": command, "imagePullPolicy": "Never"}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def test_etcd_and_the_control_plane_are_static_pods_of_the_node(cluster: KubeletCluster, host: str) -> None:
    assert {ETCD, SERVER, "kube-controller-manager"} <= cluster.containers(host).keys()
    told = cluster.get(host, "node", host)
    addresses = {each["type"]: each["address"] for each in told["status"]["addresses"]}
    assert addresses == {"InternalIP": cluster.hosts()[0]["address"], "Hostname": host}
    assert told["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")


def test_a_pod_has_an_address_of_the_nodes_range_is_reached_and_can_be_looked_into(
    cluster: KubeletCluster, host: str
) -> None:
    cluster.write_inside(host, "/srv/web.json", a_pod("web", host))
    until(lambda: "web" in cluster.kubectl(host, "apply", "--filename=/srv/web.json"), "the pod is accepted")
    address = until(lambda: cluster.get(host, "pod", "web")["status"].get("podIP"), "the pod has an address", SECONDS)
    (pods,) = cluster.get(host, "node", host)["spec"]["podCIDRs"]
    assert str(address).rpartition(".")[0] == pods.rpartition(".")[0]
    fetch = f"import urllib.request; print(urllib.request.urlopen('http://{address}/hostname', timeout=5).read())"
    until(lambda: "web" in cluster.inside(host, "python3", "-c", fetch).stdout, "the pod answers")
    assert "uid=0" in cluster.kubectl(host, "exec", "web", "--", "/busybox", "id")


def test_taking_etcds_link_away_stops_etcd_and_nothing_else_and_the_agent_brings_it_back(
    cluster: KubeletCluster, host: str
) -> None:
    def steady() -> dict[str, tuple[str, int]]:
        """A controller manager ends by itself without etcd, and is started again: what holds its pod stays."""
        found = cluster.containers(host)
        return {name: it for name, it in found.items() if name == SERVER or name.startswith("sandbox")}

    link = cluster.paths.host(host) / "etc/kubernetes/manifests/etcd.manifest"
    before = steady()
    (etcd_pod,) = [name for name in before if name.startswith("sandbox of etcd-server")]
    with stopped_agent(cluster, host):
        link.unlink()
        until(lambda: not {ETCD, etcd_pod} & cluster.containers(host).keys(), "etcd is gone", SECONDS, every=0.5)
        assert steady() == {name: it for name, it in before.items() if name != etcd_pod}
    until(lambda: ETCD in cluster.containers(host), "etcd is back", SECONDS, every=0.5)
    until(lambda: cluster.node_is_ready(host), "the node is ready", SECONDS, every=0.5)
    assert cluster.containers(host)[SERVER] == before[SERVER]


def test_a_killed_host_is_replaced_by_one_that_becomes_a_node_of_the_same_cluster(
    cluster: KubeletCluster, host: str
) -> None:
    gone = cluster.get(host, "node", host)["metadata"]["uid"]
    os.kill(cluster.hosts()[0]["pid"], signal.SIGKILL)
    until(lambda: [each for each in cluster.hosts() if each["name"] != host], "another host takes its place", SECONDS)
    other = host_of(cluster)
    until(lambda: cluster.node_is_ready(other), "the new node is ready", SECONDS, every=0.5)
    assert cluster.get(other, "node", host)["metadata"]["uid"] == gone
    ranges = [each["spec"].get("podCIDR") for each in cluster.get(other, "nodes")["items"]]
    assert len(set(ranges)) == 2
