"""The real kubelet on containerd in a host of the local cloud runs what our manifests say, and becomes a node."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509

from builders.secrets import given_away, secrets_of
from clusters.kubelet import KubeletCluster
from clusters.real import until
from e2e.listening import assert_nothing_without_tls, listeners
from e2e.pods import one_on_each
from e2e.served import served
from protokube.launch.derive import KUBELET_RELOADS
from protokube.local.base.paths import RUNTIME_CONFIG
from protokube.local.host import cgroups
from protokube.local.node import prepared
from protokube.local.node.kubelet import TUNABLES
from protokube.spec.version import parse
from protokube.store.open import open_store

SECONDS = 240.0
ETCD, SERVER = "etcd-container", "kube-apiserver"
KUBELET, PROXY_HEALTH = 10250, 10256


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
        assert cgroups.find(cgroups.name(made.paths.switch))
    assert not cgroups.find(cgroups.name(made.paths.switch))
    assert tunables() == before


@pytest.fixture
def host(cluster: KubeletCluster) -> str:
    return host_of(cluster)


def host_of(cluster: KubeletCluster) -> str:
    return str(cluster.hosts()[0]["name"])


@contextmanager
def stopped_agent(cluster: KubeletCluster, host: str) -> Iterator[None]:
    """It would mend what a test breaks."""
    pid = unit(cluster, host, "protokube.service")
    cluster.inside(host, "kill", "-STOP", str(pid))
    try:
        yield
    finally:
        cluster.inside(host, "kill", "-CONT", str(pid))


def test_etcd_and_the_control_plane_are_static_pods_of_the_node(cluster: KubeletCluster, host: str) -> None:
    assert {ETCD, SERVER, "kube-controller-manager"} <= cluster.containers(host).keys()
    told = cluster.get(host, "node", host)
    addresses = {each["type"]: each["address"] for each in told["status"]["addresses"]}
    assert addresses == {"InternalIP": cluster.hosts()[0]["address"], "Hostname": host}
    assert told["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")


def test_a_host_shares_the_images_of_its_cluster_and_copies_none(cluster: KubeletCluster, host: str) -> None:
    runtime = json.loads(cluster.template("master-a")["files"][str(RUNTIME_CONFIG)])
    shared, own = Path(runtime["prepared"]), cluster.paths.host(host) / "var/lib/containerd"

    assert shared.is_relative_to(cluster.paths.prepared)
    assert prepared.images(shared) == runtime["images"].keys(), "our own image, too"
    blobs = {each.name for each in (own / BLOBS).iterdir()}
    assert len(blobs) > 10
    assert blobs <= {each.name for each in (shared / BLOBS).iterdir()}, "nothing was imported"
    held = sum(file.lstat().st_blocks * 512 for file in own.rglob("*") if not file.is_symlink())
    assert held < SMALL
    assert prepared.is_whole(shared)


BLOBS = prepared.SHARED[0]
SMALL = 32 << 20
"""Bytes of databases and of what containers wrote; the images have half a gigabyte."""


def test_nothing_listens_without_tls_but_on_loopback(cluster: KubeletCluster, host: str) -> None:
    pid = int(cluster.hosts()[0]["pid"])
    until(lambda: PROXY_HEALTH in {port for _, port in listeners(pid)}, "kube-proxy tells of its health", SECONDS)

    assert_nothing_without_tls(cluster, host, {443, KUBELET})


def test_no_secret_of_the_store_is_in_what_the_cloud_keeps_of_a_group(cluster: KubeletCluster) -> None:
    store = open_store(f"file://{cluster.paths.store}")

    assert secrets_of(store, cluster.name)
    assert given_away(store, cluster.name, json.dumps(cluster.template("master-a"))) == []


def test_the_dns_controller_is_a_static_pod_too_and_writes_what_annotations_ask_for(
    cluster: KubeletCluster, host: str
) -> None:
    (zone,) = cluster.admin.call("about")["zones"]
    name, address = f"node.{zone}", cluster.hosts()[0]["address"]
    until(lambda: "dns-controller" in cluster.containers(host), "it runs", SECONDS, every=0.5)
    cluster.kubectl(host, "annotate", "node", host, f"dns.alpha.kubernetes.io/internal={name}")
    until(lambda: cluster.answers(name) == [address], "the name stands", SECONDS, every=0.5)
    cluster.kubectl(host, "annotate", "node", host, "dns.alpha.kubernetes.io/internal-")
    until(lambda: cluster.answers(name) == [], "the name is gone", SECONDS, every=0.5)


def test_a_pod_has_an_address_of_the_nodes_range_is_reached_and_can_be_looked_into(
    cluster: KubeletCluster, host: str
) -> None:
    ((name, address),) = one_on_each(cluster).items()
    (pods,) = cluster.get(host, "node", host)["spec"]["podCIDRs"]
    assert str(address).rpartition(".")[0] == pods.rpartition(".")[0]
    fetch = f"import urllib.request; print(urllib.request.urlopen('http://{address}/hostname', timeout=5).read())"
    until(lambda: name in cluster.inside(host, "python3", "-c", fetch).stdout, "the pod answers")
    assert "uid=0" in cluster.kubectl(host, "exec", name, "--", "/busybox", "id")


def steady(cluster: KubeletCluster, host: str) -> dict[str, tuple[str, int]]:
    """What no loss of etcd ends. A controller manager ends by itself and is started again; what holds its pod stays."""
    found = cluster.containers(host)
    return {name: it for name, it in found.items() if name in (SERVER, "kube-proxy") or is_static(name, host)}


def is_static(name: str, host: str) -> bool:
    """Whether it holds a static pod together: these bear the name of their node; others come and go."""
    return name.startswith("sandbox") and name.endswith(f"-{host}")


def etcds_pod(cluster: KubeletCluster, host: str) -> str:
    (found,) = [name for name in cluster.containers(host) if name.startswith("sandbox of etcd-server")]
    return found


def unit(cluster: KubeletCluster, host: str, name: str) -> int:
    """The process of a unit, as the host numbers it."""
    pattern = {"kubelet.service": "^kubelet ", "protokube.service": "protokube agent"}[name]
    return int(cluster.inside(host, "pgrep", "--oldest", "--full", pattern).stdout)


def test_taking_etcds_link_away_stops_etcd_and_nothing_else_and_the_agent_brings_it_back(
    cluster: KubeletCluster, host: str
) -> None:
    link = cluster.paths.host(host) / "etc/kubernetes/manifests/etcd.manifest"
    before, etcd_pod = steady(cluster, host), etcds_pod(cluster, host)
    with stopped_agent(cluster, host):
        link.unlink()
        until(lambda: not {ETCD, etcd_pod} & cluster.containers(host).keys(), "etcd is gone", SECONDS, every=0.5)
        assert steady(cluster, host) == {name: it for name, it in before.items() if name != etcd_pod}
    until(lambda: ETCD in cluster.containers(host), "etcd is back", SECONDS, every=0.5)
    until(lambda: cluster.node_is_ready(host), "the node is ready", SECONDS, every=0.5)
    assert cluster.containers(host)[SERVER] == before[SERVER]


def test_a_volume_that_is_no_longer_mounted_stops_etcd_and_nothing_else_and_the_agent_mounts_it_again(
    cluster: KubeletCluster, host: str
) -> None:
    until(lambda: cluster.node_is_ready(host), "the node is ready", SECONDS, every=0.5)
    volume = cluster.volume("a")["id"]
    point = f"/mnt/master-{volume}"
    log = cluster.paths.host(host) / "var/log/protokube.service.log"
    link = cluster.paths.host(host) / "etc/kubernetes/manifests/etcd.manifest"
    before, etcd_pod, kubelet = steady(cluster, host), etcds_pod(cluster, host), unit(cluster, host, "kubelet.service")
    etcd, said = cluster.containers(host)[ETCD], len(log.read_text())

    gone = cluster.inside(host, "umount", "--lazy", point)
    assert gone.returncode == 0, gone.stderr

    until(lambda: cluster.containers(host).get(ETCD) != etcd, "etcd is stopped", SECONDS, every=0.2)
    until(lambda: ETCD in cluster.containers(host), "etcd is back", SECONDS, every=0.5)
    assert f"removed {link.name}: its volume is not mounted" in log.read_text()[said:]
    assert cluster.inside(host, "mountpoint", "--quiet", point).returncode == 0
    assert Path(link.readlink()).is_relative_to(point)
    after = steady(cluster, host)
    assert {name: it for name, it in after.items() if name != etcd_pod} == {
        name: it for name, it in before.items() if name != etcd_pod
    }
    assert unit(cluster, host, "kubelet.service") == kubelet
    until(lambda: cluster.node_is_ready(host), "the node is ready", SECONDS, every=0.5)


def reloads(cluster: KubeletCluster, host: str) -> bool:
    """Whether a kubelet of this version reads its serving certificate again by itself."""
    told = parse(cluster.get(host, "node", host)["status"]["nodeInfo"]["kubeletVersion"])
    assert told is not None
    return told >= KUBELET_RELOADS[0]


def test_a_kubelet_whose_serving_certificate_was_renewed_shows_the_new_one_and_its_pods_go_on(
    cluster: KubeletCluster, host: str
) -> None:
    def everything() -> dict[str, tuple[str, int]]:
        return {**steady(cluster, host), ETCD: cluster.containers(host)[ETCD]}

    address, keys = cluster.hosts()[0]["address"], cluster.paths.host(host) / "srv/kubernetes"
    until(lambda: cluster.node_is_ready(host), "the node is ready", SECONDS, every=0.5)
    shown = served(cluster, address, KUBELET)
    assert shown == x509.load_pem_x509_certificate((keys / "kubelet-server.crt").read_bytes())
    before, kubelet = everything(), unit(cluster, host, "kubelet.service")

    (keys / "kubelet-server.crt").unlink()
    cluster.inside(host, "kill", str(unit(cluster, host, "protokube.service")))  # else it looks in ten minutes

    def renewed() -> bool:
        new = x509.load_pem_x509_certificate((keys / "kubelet-server.crt").read_bytes())
        return new != shown and served(cluster, address, KUBELET) == new

    until(renewed, "the kubelet shows its new certificate", SECONDS, every=0.5)
    again = unit(cluster, host, "kubelet.service")
    assert (again == kubelet) is reloads(cluster, host), "it is started anew if it would not notice, and only then"
    until(lambda: cluster.node_is_ready(host), "the node is ready", SECONDS, every=0.5)
    assert everything() == before
    assert unit(cluster, host, "kubelet.service") == again, "once is enough"


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
