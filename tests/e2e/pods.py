"""Pods of real kubelets, and what one sees from inside them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from clusters.kubelet import KubeletCluster
from clusters.real import until

SECONDS = 300.0
LABELS = {"app": "web"}


def a_pod(cluster: KubeletCluster, node: str) -> dict[str, object]:
    """Serves its own name on port 80; put on its node by us, so that no scheduler is needed."""
    command = ["/busybox", "httpd", "-f", "-p", "80", "-h", "/etc"]
    container = {"name": "web", "image": cluster.pause, "command": command, "imagePullPolicy": "Never"}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"on-{node}", "labels": LABELS}, "spec": spec}


def one_on_each(cluster: KubeletCluster) -> dict[str, str]:
    """The addresses of pods, one on each host, by their names."""
    hosts = [str(each["name"]) for each in cluster.hosts()]
    one = hosts[0]
    for host in hosts:
        until(lambda host=host: cluster.node_is_ready(one, host), f"{host} is ready", SECONDS, every=0.5)  # type: ignore[misc]
    apply(cluster, one, [a_pod(cluster, host) for host in hosts])

    def addresses() -> dict[str, str]:
        found = {each["metadata"]["name"]: each["status"].get("podIP") for each in cluster.get(one, "pods")["items"]}
        return found if len(found) == len(hosts) and all(found.values()) else {}

    return until(addresses, "every pod has an address", SECONDS, every=0.5)


def apply(cluster: KubeletCluster, host: str, objects: Sequence[dict[str, object]]) -> None:
    tree = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    cluster.write_inside(host, "/srv/objects.json", json.dumps(tree))
    until(lambda: cluster.kubectl(host, "apply", "--filename=/srv/objects.json"), "the objects are accepted")


def web_process(cluster: KubeletCluster, host: str) -> int:
    """The process of the pod on a host, as this machine numbers it."""
    _, pid = cluster.containers(host)["web"]
    return outside(cluster, host, pid)


def from_inside(pid: int, code: str, python: str = "python3") -> str:
    """What a Python program of this machine says in the network of a pod's process, with the pod's resolv.conf."""
    with NamedTemporaryFile() as own:
        own.write(Path(f"/proc/{pid}/root/etc/resolv.conf").read_bytes())
        own.flush()
        instead = f'mount --bind {own.name} /etc/resolv.conf && exec "$@"'
        words = ["nsenter", f"--target={pid}", "--net", "--", "unshare", "--mount", "sh", "-c", instead, "sh"]
        ran = subprocess.run([*words, python, "-c", code], capture_output=True, text=True, timeout=60)
    return ran.stdout.strip()


def fetched(pid: int, url: str) -> str:
    return from_inside(pid, f"import urllib.request; print(urllib.request.urlopen('{url}', timeout=5).read().decode())")


def outside(cluster: KubeletCluster, host: str, pid: int) -> int:
    """The same process as this machine numbers it."""
    first = next(each["pid"] for each in cluster.hosts() if each["name"] == host)
    space = Path(f"/proc/{first}/ns/pid").readlink()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:  # it ended meanwhile
            continue
        numbers = next(line for line in text.splitlines() if line.startswith("NSpid:")).split()[1:]
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
