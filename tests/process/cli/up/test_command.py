"""What `up` decides before it touches the machine, and what it says at the end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fakes.mirror import a_folder
from fakes.programs import all_of_etcd
from protokube.binaries.etcd import ETCD
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
