"""Three masters that are nodes: a pod of one reaches the pods of the others by the routes that our agents made."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers_cluster import until
from helpers_kubelet import KubeletCluster

SECONDS = 300.0


@pytest.fixture
def cluster() -> Iterator[KubeletCluster]:
    with KubeletCluster() as made:
        yield made.up_with_kubelet(masters=3)


def a_pod(node: str) -> dict[str, object]:
    """Serves its own name on port 80; put on its node by us, so that no scheduler is needed."""
    command = ["/busybox", "httpd", "-f", "-p", "80", "-h", "/etc"]
    container = {"name": "web", "image": "registry.k8s.io/pause:3.2", "command": command, "imagePullPolicy": "Never"}
    spec = {"nodeName": node, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"on-{node}"}, "spec": spec}


def from_inside(pid: int, address: str) -> str:
    """What a pod answers to whoever is in the network of another one's process."""
    code = f"import urllib.request; print(urllib.request.urlopen('http://{address}/hostname', timeout=5).read())"
    asked = ["nsenter", f"--target={pid}", "--net", "--", "python3", "-c", code]
    return subprocess.run(asked, capture_output=True, text=True, timeout=30).stdout


def outside(cluster: KubeletCluster, host: str, pid: int) -> int:
    """The same process as this machine numbers it."""
    first = next(each["pid"] for each in cluster.hosts() if each["name"] == host)
    space = Path(f"/proc/{first}/ns/pid").readlink()
    for status in Path("/proc").glob("[0-9]*/status"):
        numbers = next(line for line in status.read_text().splitlines() if line.startswith("NSpid:")).split()[1:]
        if len(numbers) > 2 and numbers[1] == str(pid) and _is_below(int(status.parent.name), space):
            return int(status.parent.name)
    raise AssertionError(f"{host} has no process {pid}")


def _is_below(pid: int, space: Path) -> bool:
    """Whether one of its forebears is the first process of that namespace."""
    while pid > 1:
        if Path(f"/proc/{pid}/ns/pid").readlink() == space:
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def test_pods_of_all_nodes_reach_each_other(cluster: KubeletCluster) -> None:
    hosts = [str(each["name"]) for each in cluster.hosts()]
    one = hosts[0]
    for host in hosts:
        until(lambda host=host: cluster.node_is_ready(one, host), f"{host} is ready", SECONDS, every=0.5)  # type: ignore[misc]
    pods = {"apiVersion": "v1", "kind": "List", "items": [a_pod(host) for host in hosts]}
    cluster.write_inside(one, "/srv/pods.json", json.dumps(pods))
    until(lambda: "on-" in cluster.kubectl(one, "apply", "--filename=/srv/pods.json"), "the pods are accepted")

    def addresses() -> dict[str, str]:
        found = {each["metadata"]["name"]: each["status"].get("podIP") for each in cluster.get(one, "pods")["items"]}
        return found if len(found) == len(hosts) and all(found.values()) else {}

    reached = until(addresses, "every pod has an address", SECONDS, every=0.5)
    assert len({address.rpartition(".")[0] for address in reached.values()}) == len(hosts)
    for host in hosts:
        _, pid = cluster.containers(host)["web"]
        own = outside(cluster, host, pid)
        for name, address in reached.items():
            until(lambda own=own, a=address, n=name: n in from_inside(own, a), f"{name} answers a pod of {host}")  # type: ignore[misc]
