"""What `up` decides before it touches the machine, and what it says at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builders.command import NOWHERE
from fakes.assets import put_archive, serving
from fakes.mirror import a_folder
from fakes.programs import all_of_etcd
from protokube.binaries.archives import ETCD_ARCHIVES
from protokube.binaries.etcd import ETCD
from protokube.binaries.product import Release
from protokube.binaries.progress import Silent
from protokube.cli.shared.completing import complete_here
from protokube.cli.up.choosing import (
    default_spec,
    find_etcd,
    read_default_spec,
    read_spec,
    without_coredns,
)
from protokube.config.complete import Config
from protokube.launch.cloud import images
from protokube.local.node.kubehost import Programs, network_images


def a_spec(folder: Path, fields: str) -> Path:
    file = folder / "spec.yaml"
    head = "apiVersion: protokube.io/v1alpha1\nkind: Cluster\nmetadata: {name: dev.example.com}\n"
    file.write_text(f"{head}spec: {{{fields}}}\n")
    return file


def test_an_etcd_that_the_user_names_and_is_too_old_runs_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ETCD.chosen, str(all_of_etcd(tmp_path / "own", "3.4.23")))
    spec, _ = read_spec(a_spec(tmp_path, "cloud: local, kubernetesVersion: 1.36.4"))

    found = find_etcd(spec, None, "1.36.4", Silent())
    config = complete_here(spec, found.version, "1.36.4")

    assert found.version == "3.4.23"
    assert "etcd 3.4.23 does not answer progress requests" in config.warnings[0].message
    assert complete_here(spec, found.version, "").warnings == ()


def test_without_coredns_and_without_debian_packages_up_goes_on_and_says_what_pods_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert without_coredns(tmp_path) == "its substitute is not either, so pods resolve no names"

    programs = Programs(kubernetes=a_folder(tmp_path / "kubernetes"), etcd=tmp_path, coredns=None)
    names = replace(images(the_config()), proxy="")
    assert list(network_images(names, programs, tmp_path, tmp_path / "cache")) == []


def the_config() -> Config:
    spec, _ = read_default_spec(default_spec("dev", 1, events=False))
    return complete_here(spec, "3.6.8", "1.36.4")


FIND = """
import sys
from protokube.binaries.progress import Silent
from protokube.cli.up.choosing import default_spec, find_etcd, read_default_spec
spec, _ = read_default_spec(default_spec("dev", 1, events=False))
print(find_etcd(spec, None, "", Silent(), later=sys.argv[1]).version)
"""


@pytest.mark.parametrize(("later", "reached", "version"), [
    ("", True, "3.4.23"), ("1.36.4", True, "3.6.8"), ("1.36.4", False, "3.4.23"),
])  # fmt: skip
def test_a_cluster_that_waits_for_kubernetes_gets_the_etcd_for_it_if_that_can_be_had(
    tmp_path: Path, later: str, reached: bool, version: str
) -> None:
    cache, programs = tmp_path / "cache", tmp_path / "programs"
    programs.mkdir()
    (programs / "cat").symlink_to(shutil.which("cat") or "cat")
    for package in ("etcd-server", "etcd-client"):
        all_of_etcd(cache / package / "usr/bin", "3.4.23")
    folder = all_of_etcd(tmp_path / "released", "3.6.8")
    found = Release(version="3.6.8", folder=folder, programs=ETCD.in_folder(folder))
    put_archive(tmp_path / "mirror", found, ETCD_ARCHIVES)
    with serving(tmp_path / "mirror") as url:
        env = {**os.environ, "PATH": str(programs), "PIP_NO_INDEX": "1", "PROTOKUBE_CACHE": str(cache)}
        env = {**env, ETCD.chosen: "", "PROTOKUBE_ETCD_MIRROR": url if reached else NOWHERE}
        ran = subprocess.run([sys.executable, "-c", FIND, later], capture_output=True, text=True, env=env)
    assert (ran.stdout, ran.returncode) == (f"{version}\n", 0), ran.stderr
