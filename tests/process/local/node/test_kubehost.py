"""The template of a host with a real kubelet: its units, its files, and its kubelet's configuration."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from protokube.config.complete import Config, complete
from protokube.launch.cloud import images
from protokube.local.base.paths import Paths
from protokube.local.node import kubehost
from protokube.spec.parse import read

SPEC = """apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata: {name: laptop}
spec: {cloud: local, masters: 1, kubernetesVersion: 1.20.2}
"""


@pytest.fixture(scope="module")
def config() -> Config:
    return complete(read([("spec", SPEC)]))


def test_images_bear_the_names_of_the_manifests_and_only_of_programs_that_are_here(
    config: Config, tmp_path: Path
) -> None:
    for program in ("etcd", "busybox", "kube-apiserver"):
        (tmp_path / program).touch()
    made = kubehost.wanted_images(images(config), tmp_path, tmp_path / "etcd", tmp_path / "busybox")
    tree = config.cluster
    assert [image.name for image in made] == [
        tree["containerd"]["sandboxImage"],
        tree["etcdClusters"]["main"]["image"],
        tree["kubeAPIServer"]["image"],
    ]
    assert made[2].files == {"/usr/local/bin/kube-apiserver": tmp_path / "kube-apiserver"}


def test_there_is_an_image_of_every_component_that_a_kubelet_is_to_start(config: Config, tmp_path: Path) -> None:
    from protokube.launch.derive import from_config, master_kubelets

    for program in ("etcd", "busybox", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        (tmp_path / program).touch()
    made = [
        *kubehost.wanted_images(images(config), tmp_path, tmp_path / "etcd", tmp_path / "busybox"),
        *kubehost.own_images(images(config)),
    ]
    wanted = kubehost.as_nodes(from_config(config), master_kubelets(config), "kubenet")
    assert "dns-controller" in {each.name for each in wanted.components}
    for each in wanted.components:
        (image,) = [image for image in made if image.name == each.image]
        program = each.program[0] if each.program else f"/usr/local/bin/{each.name}"
        assert program in {**image.files, **image.texts}


def test_coredns_is_an_image_of_its_own_where_its_program_is_here(config: Config, tmp_path: Path) -> None:
    coredns = tmp_path / "coredns"
    shutil.copy(shutil.which("true") or "", coredns)
    programs = kubehost.Programs(kubernetes=tmp_path, etcd=tmp_path / "etcd", coredns=coredns)

    (made,) = kubehost.network_images(images(config), programs, tmp_path / "busybox", tmp_path)

    assert (made.name, made.files["/coredns"]) == (config.cluster["clusterDNS"]["image"], coredns)
    other = replace(images(config), core_dns="")
    assert list(kubehost.network_images(other, programs, tmp_path / "busybox", tmp_path)) == []


def test_images_that_cannot_be_prepared_are_a_warning_with_the_reason(tmp_path: Path) -> None:
    pause = tmp_path / "pause.tar"
    for name, text in (
        ("containerd", "exec sleep 600"),
        ("ctr", 'case "$*" in *import*) echo no room >&2; exit 1;; esac'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    for programs, reason in ((tmp_path, "no room"), (tmp_path / "gone", "No such file or directory")):
        root, problem = kubehost.imported_images({"pause": pause}, {}, programs, tmp_path)

        assert root is None
        assert problem
        assert reason in problem.message


def test_a_cluster_whose_images_could_not_be_prepared_lets_its_hosts_import_them(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "laptop")

    assert kubehost.shared_images(None, paths) is None
    assert kubehost.shared_images(tmp_path / "gone", paths) is None
