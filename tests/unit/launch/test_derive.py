"""The kubelet of each instance group, as the complete configuration renders it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builders.config import a_group, completed, kubelet_file, kubelet_flags
from protokube import fast_yaml
from protokube.config.complete import Config
from protokube.launch.derive import from_config, kubelet_of
from protokube.launch.machine import from_tree, to_tree

FILE = "/etc/kubernetes/config/kubelet.yaml"


@pytest.fixture(scope="module")
def config() -> Config:
    return completed(
        a_group("nodes", kubelet={"maxPods": 42}), a_group("bastions", role="Bastion"), masterKubelet={"maxPods": 12}
    )


def test_any_group_has_the_flags_and_the_file_that_are_rendered_for_it(config: Config) -> None:
    made = kubelet_of(config, "nodes")
    assert made.flags == kubelet_flags(config)
    assert {path: fast_yaml.load(text) for path, text in made.files.items()} == {FILE: kubelet_file(config)}
    assert "maxPods: 42\n" in made.files[FILE]


def test_a_file_is_adapted_before_it_becomes_text(config: Config) -> None:
    def adapt(tree: dict[str, Any]) -> dict[str, Any]:
        return {"kind": tree["kind"], "failSwapOn": False}

    assert kubelet_of(config, "nodes", adapt).files == {FILE: "kind: KubeletConfiguration\nfailSwapOn: false\n"}


def test_launch_data_have_the_kubelets_of_masters_only(config: Config) -> None:
    wanted = from_config(config)
    assert sorted(wanted.kubelets) == ["master-us-east-1a", "master-us-east-1b", "master-us-east-1c"]
    assert all("maxPods: 12\n" in each.files[FILE] for each in wanted.kubelets.values())
    assert from_tree(json.loads(json.dumps(to_tree(wanted)))) == wanted


@pytest.mark.parametrize("which", [{"nodes": False}, {"kubernetes": False}])
def test_launch_data_of_masters_that_are_no_nodes_have_no_kubelets(config: Config, which: dict[str, bool]) -> None:
    assert from_config(config, **which).kubelets == {}
