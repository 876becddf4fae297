"""Versions and images of what runs, by the version of Kubernetes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from builders.config import completed, kops
from protokube.config.complete import complete
from protokube.config.etcd_versions import ETCD
from protokube.config.images import CONTAINERD, COREDNS, PAUSE, by_version
from protokube.spec.version import Version

TABLES = {"pause": PAUSE, "coredns": COREDNS, "containerd": CONTAINERD, "etcd": ETCD}


@pytest.mark.parametrize("name", TABLES)
def test_a_version_between_two_entries_takes_the_older_and_one_before_all_takes_the_oldest(name: str) -> None:
    entries = TABLES[name]
    series = list(entries)

    assert series == sorted(series)
    for low, high in pairwise(series):
        for minor in range(low[1], high[1]):
            assert by_version(entries, Version(1, minor, 9)) == entries[low]
    assert by_version(entries, Version(1, 99)) == entries[series[-1]]
    assert by_version(entries, Version(1, 10)) == entries[series[0]]


@pytest.mark.parametrize(
    ("version", "pause", "coredns", "containerd", "etcd"),
    [
        ("1.20.15", "pause:3.2", "coredns:1.7.0", "1.6.36", "3.4.13"),
        ("1.21.0", "pause:3.4.1", "coredns/coredns:v1.8.0", "1.6.36", "3.4.13"),
        ("1.22.0", "pause:3.5", "coredns/coredns:v1.8.4", "1.6.36", "3.5.24"),
        ("1.28.15", "pause:3.9", "coredns/coredns:v1.10.1", "1.7.28", "3.5.24"),
        ("1.33.0", "pause:3.10", "coredns/coredns:v1.12.0", "2.1.4", "3.5.24"),
        ("1.34.0", "pause:3.10.1", "coredns/coredns:v1.12.1", "2.1.4", "3.6.8"),
        ("1.36.4", "pause:3.10.2", "coredns/coredns:v1.14.2", "2.1.4", "3.6.8"),
    ],
)
def test_what_runs_goes_with_the_version(version: str, pause: str, coredns: str, containerd: str, etcd: str) -> None:
    cluster = completed(kubernetesVersion=version).cluster

    assert cluster["containerd"]["sandboxImage"] == f"registry.k8s.io/{pause}"
    assert cluster["clusterDNS"]["image"] == f"registry.k8s.io/{coredns}"
    assert cluster["containerd"]["version"] == containerd
    assert cluster["etcdClusters"]["main"]["version"] == etcd
    assert cluster["etcdClusters"]["main"]["image"] == f"registry.k8s.io/etcd:{etcd}-0"


def test_the_four_components_run_from_the_images_of_the_version() -> None:
    cluster = completed(kubernetesVersion="1.33.1").cluster

    assert {cluster[each]["image"] for each in ("kubeAPIServer", "kubeControllerManager", "kubeScheduler")} == {
        "registry.k8s.io/kube-apiserver:v1.33.1",
        "registry.k8s.io/kube-controller-manager:v1.33.1",
        "registry.k8s.io/kube-scheduler:v1.33.1",
    }
    assert cluster["kubeProxy"]["image"] == "registry.k8s.io/kube-proxy:v1.33.1"


@pytest.mark.parametrize("field", ["containerRegistry", "containerProxy"])
def test_every_image_comes_from_the_registry_of_the_user(field: str) -> None:
    config = completed(assets={field: "registry.example.com/mirror/"})
    cluster = config.cluster
    images = [cluster["kubeAPIServer"]["image"], cluster["clusterDNS"]["image"], cluster["containerd"]["sandboxImage"]]

    assert all(image.startswith("registry.example.com/mirror/") for image in images)
    assert cluster["etcdClusters"]["events"]["image"].startswith("registry.example.com/mirror/etcd:")
    assert f"assets.{field}" in config.ledger.origins["kubeProxy.image"].of


def test_a_registry_that_holds_copies_goes_before_one_that_passes_requests_through() -> None:
    cluster = completed(assets={"containerProxy": "proxy", "containerRegistry": "copies"}).cluster

    assert cluster["kubeProxy"]["image"].startswith("copies/")


def test_an_empty_registry_is_the_usual_one() -> None:
    cluster = completed(assets={"containerRegistry": "", "containerProxy": ""}).cluster

    assert cluster["kubeProxy"]["image"].startswith("registry.k8s.io/")


def test_an_image_the_user_names_is_taken_as_it_is() -> None:
    cluster = completed(kubeProxy={"image": "mine/proxy"}, assets={"containerProxy": "proxy"}).cluster

    assert cluster["kubeProxy"]["image"] == "mine/proxy"


def test_an_etcd_older_than_3_4_is_an_image_without_a_build_number() -> None:
    spec = kops(
        {
            "kubernetesVersion": "1.10.0",
            "networkCIDR": "172.20.0.0/16",
            "subnets": [{"name": "us-east-1a", "zone": "us-east-1a", "type": "Public", "cidr": "172.20.32.0/19"}],
            "etcdClusters": [
                {
                    "name": "main",
                    "version": "3.2.24",
                    "etcdMembers": [{"name": "a", "instanceGroup": "master-us-east-1a"}],
                }
            ],
        }
    )

    assert complete(spec).cluster["etcdClusters"]["main"]["image"] == "registry.k8s.io/etcd:3.2.24"
