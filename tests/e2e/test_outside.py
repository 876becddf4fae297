"""Pods of real kubelets reach the outside through the laptop; among themselves they are seen as who they are.

The laptop and the outside are network namespaces of the test.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Self

import pytest

from clusters.kubelet import KubeletCluster
from clusters.real import until
from e2e.pods import LABELS, SECONDS, apply, fetched, from_inside, one_on_each, web_process
from fakes.outside_world import LAPTOP, WEB, WEB_NAME, World, a_world
from fakes.registry import image_pages
from protokube.binaries import executables
from protokube.images import packages, proxyimage
from protokube.local.bringup import CACHE
from protokube.local.node import hosttools, kubehost
from protokube.local.node.kubehost import BUSYBOX

LISTEN = """
import socket
with socket.create_server(("0.0.0.0", 7001)) as server:
    print("there", flush=True)
    print(server.accept()[1][0], flush=True)
"""
CONNECT = "import socket; socket.create_connection(('{}', 7001), 10); print('reached')"


class OnLaptop(KubeletCluster):
    """Every command of the user runs there, and hosts are not isolated."""

    def up(self, *words: str) -> Self:
        return super().up("--no-isolated", *words)


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as made:
        yield made


def obtain_packages() -> None:
    """What `up --kubelet` takes from Debian's packages, which cannot be reached from inside."""
    for package in kubehost.PACKAGES:
        executables.unpack(package, CACHE)
    hosttools.obtain(CACHE)
    for package in (proxyimage.TABLES, proxyimage.TRACKING, "dnsmasq-base"):
        packages.unpack_whole(package, CACHE)


@pytest.fixture
def cluster(world: World) -> Iterator[KubeletCluster]:
    obtain_packages()
    with OnLaptop() as made:
        made.within = world.within
        yield made.up_with_kubelet(masters=3)


def source_seen(listening: int, asking: int, address: str) -> str:
    """Which address the network of one process sees when another connects to it."""
    command = ["nsenter", f"--target={listening}", "--net", sys.executable, "-c", LISTEN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "there\n"
        assert from_inside(asking, CONNECT.format(address)) == "reached"
        return server.stdout.readline().strip()


def test_pods_reach_the_outside_by_name_and_are_themselves_among_each_other(
    world: World, cluster: KubeletCluster
) -> None:
    assert cluster.told["outside"]["reached"], cluster.told["outside"]
    hosts = {str(each["name"]): each for each in cluster.hosts()}
    addresses = one_on_each(cluster)
    pods = {host: web_process(cluster, host) for host in hosts}
    one, other, *_ = hosts

    for pid in pods.values():
        until(lambda pid=pid: fetched(pid, f"http://{WEB}/") == LAPTOP, "a pod gets out", SECONDS, every=0.5)  # type: ignore[misc]
        until(
            lambda pid=pid: fetched(pid, f"http://{WEB_NAME}/") == LAPTOP, "a pod gets out by name", SECONDS, every=0.5  # type: ignore[misc]
        )  # fmt: skip
    assert world.web.sources == world.names.sources == {LAPTOP}
    assert not [asked for asked in world.names.wanted if cluster.name in asked or "cluster.local" in asked]

    pull_an_image_and_run_it(world, cluster, one)

    own = addresses[f"on-{one}"]
    assert source_seen(pods[other], pods[one], addresses[f"on-{other}"]) == own
    for host in (one, other):
        assert source_seen(hosts[host]["pid"], pods[one], hosts[host]["address"]) == own
    service = {"selector": LABELS, "ports": [{"port": 80}]}
    apply(cluster, one, [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service}])
    for pid in pods.values():
        until(lambda pid=pid: fetched(pid, "http://web/hostname") in addresses, "a Service answers", SECONDS, every=0.5)  # type: ignore[misc]


def pull_an_image_and_run_it(world: World, cluster: KubeletCluster, host: str) -> None:
    """By the client of containerd: the kubelet's own way would want a registry with a certificate."""
    image = f"{WEB_NAME}/tools/busybox:1"
    world.pages.update(image_pages("tools/busybox", "1", CACHE.joinpath(*BUSYBOX)))
    pull = ("ctr", "--namespace=k8s.io", "images", "pull", "--plain-http", image)
    pulled = cluster.with_path(host, *pull)
    assert pulled.returncode == 0, pulled.stdout + pulled.stderr
    command = ["/busybox", "sleep", "1000"]
    container = {"name": "pulled", "image": image, "command": command, "imagePullPolicy": "Never"}
    spec = {"nodeName": host, "terminationGracePeriodSeconds": 0, "containers": [container]}
    apply(cluster, host, [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pulled"}, "spec": spec}])
    until(lambda: "pulled" in cluster.containers(host), "a pod runs of the image that was pulled", SECONDS, every=0.5)
