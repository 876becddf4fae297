"""The first `up` on a machine that has nothing: it fetches all programs, and ends with nodes that run pods.

Releases come from servers on loopback, into a cache of its own; only Debian's packages are those that are here already.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builders.command import Answer, environment
from clusters.kubelet import KubeletCluster
from clusters.real import until
from fakes.assets import put_all, serving
from protokube.binaries.coredns import COREDNS
from protokube.binaries.etcd import ETCD
from protokube.binaries.kubernetes import KUBERNETES
from protokube.binaries.product import CACHE, Product, Release
from protokube.binaries.progress import Silent
from protokube.cli.up.kubernetes import MIRRORS
from protokube.config.etcd_versions import etcd_for
from protokube.config.images import COREDNS as COREDNS_BY_VERSION
from protokube.config.images import PAUSE, by_version
from protokube.local.node.packages import obtain_packages
from protokube.spec.version import Version, parse

SECONDS = 240.0
VERSIONED = ("kubernetes", "etcd", "coredns", "images", "conformance", "go")
"""Folders of the cache that are no Debian packages."""


@dataclass(frozen=True)
class First:
    """The cluster, what the one command said, and the cache that it filled."""

    cluster: KubeletCluster
    said: Answer
    cache: Path

    @property
    def told(self) -> dict[str, Any]:
        return self.cluster.told

    def kubectl(self, *words: str) -> str:
        """With what `up` printed, as the user has it."""
        command = [self.told["kubectl"], "--request-timeout=20s", *words]
        env = environment(KUBECONFIG=self.told["env"]["KUBECONFIG"])
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


def here(product: Product, version: str) -> Release:
    found = product.find(version, CACHE)
    assert found is not None, f"no {product.name} {version} on this machine: `scripts/kubernetes` has it made"
    return found


def by_number(version: str) -> Version:
    found = parse(version)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[First]:
    releases, cache = tmp_path_factory.mktemp("releases"), tmp_path_factory.mktemp("cache")
    kubernetes = KUBERNETES.find(None, CACHE)
    assert kubernetes is not None, "no Kubernetes on this machine: `scripts/kubernetes` has it made"
    version = by_number(kubernetes.version)
    coredns = by_version(COREDNS_BY_VERSION, version).removeprefix("v")
    put_all(releases, kubernetes, here(ETCD, etcd_for(version)), here(COREDNS, coredns))
    obtain_packages(CACHE, Silent())
    for each in CACHE.iterdir():
        if each.is_dir() and each.name not in VERSIONED:
            shutil.copytree(each, cache / each.name, symlinks=True)
        elif each.suffix == ".libraries":
            shutil.copy(each, cache)
    with serving(releases) as url, KubeletCluster() as cluster:
        said = cluster.run(
            "up", "--cluster", cluster.name, "--output", "json", "--timeout", "400", seconds=900,
            PROTOKUBE_CACHE=str(cache), PROTOKUBE_ETCD_MIRROR=f"{url}/etcd", PROTOKUBE_COREDNS_MIRROR=f"{url}/coredns",
            **{MIRRORS: f"{url}/kubernetes", KUBERNETES.chosen: "", ETCD.chosen: ""},
        )  # fmt: skip
        assert said.code == 0, said.err + cluster._why()
        cluster.told = json.loads(said.out)
        cluster.pause = f"registry.k8s.io/pause:{by_version(PAUSE, version)}"
        yield First(cluster, said, cache)
    shutil.rmtree(cache)
    shutil.rmtree(releases)


def test_one_command_ends_with_three_nodes_that_are_ready(first: First) -> None:
    rows = [line.split() for line in first.kubectl("get", "nodes", "--no-headers").splitlines()]

    assert [row[1] for row in rows] == ["Ready"] * 3
    assert {row[4] for row in rows} == {f"v{first.told['kubernetes']}"}
    assert (first.told["kubelet"], first.told["kubernetesMissing"], first.told["kubeletMissing"]) == (True, None, None)


def test_all_programs_are_those_that_were_fetched(first: First) -> None:
    version, etcd = first.told["kubernetes"], first.told["etcd"]

    assert Path(first.told["kubectl"]).parent == first.cache / "kubernetes" / version
    assert Path(first.told["etcdctl"]).parent == first.cache / "etcd" / etcd
    assert [each.name for each in (first.cache / "coredns").iterdir() if each.name[0].isdigit()]
    assert first.cache.name in first.cluster.template("master-a")["path"]


def test_the_pods_of_a_deployment_run_on_masters(first: First) -> None:
    command = ["/busybox", "sleep", "2147483647"]
    container = {"name": "app", "image": first.cluster.pause, "command": command, "imagePullPolicy": "Never"}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    labels = {"app": "first"}
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "first"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }  # fmt: skip
    file = first.cache / "deployment.json"
    file.write_text(json.dumps(deployment))
    first.kubectl("apply", "--filename", str(file))

    def running() -> bool:
        pods = json.loads(first.kubectl("get", "pods", "--selector", "app=first", "--output", "json"))["items"]
        return [each["status"]["phase"] for each in pods] == ["Running"] * 3

    until(running, "three pods run", SECONDS, every=0.5)


@pytest.mark.parametrize("words", ["protokube status", "get nodes", "endpoint status", "put hello"])
def test_what_up_prints_next_works_as_it_is_printed(first: First, words: str) -> None:
    (command,) = [each for each in first.told["next"] if words in each]

    env = environment(PROTOKUBE_STATE=str(first.cluster.state))
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, env=env, cwd="/")

    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert ran.stdout
