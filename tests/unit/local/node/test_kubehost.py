"""The template of a host with a real kubelet: its units, its files, and its kubelet's configuration."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters.scenario.host import wanted_of
from protokube.config.complete import Config, complete
from protokube.errors import Refused
from protokube.launch import cloud
from protokube.launch.derive import from_config, master_kubelets
from protokube.launch.files import KUBELET_ENV, kubelet_files
from protokube.launch.machine import KubeletConfig, from_tree, to_tree
from protokube.local.base.paths import Paths
from protokube.local.bringup import template
from protokube.local.cloud.template import Template
from protokube.local.node import containerd, kubehost, kubelet
from protokube.local.node.containerd import RuntimeConfig
from protokube.local.node.kubehost import Runtime
from protokube.spec.parse import read

SPEC = """apiVersion: protokube.io/v1alpha1
kind: Cluster
metadata: {name: laptop}
spec: {cloud: local, masters: 1, kubernetesVersion: 1.20.2}
"""
FILE = "/etc/kubernetes/config/kubelet.yaml"
PATHS = Paths(Path("/state/laptop"))


@pytest.fixture(scope="module")
def config() -> Config:
    return complete(read([("spec", SPEC)]))


@pytest.fixture
def kubelets(config: Config) -> dict[str, KubeletConfig]:
    return master_kubelets(config, kubelet.settings)


@pytest.fixture
def host_template() -> dict[str, Any]:
    runtime = Runtime(
        folders=(Path("/cache/containerd"),),
        plugins=Path("/cache/cni"),
        shown=(Path("/cache/images"), Path("/cache/iptables")),
        images={"pause:3": Path("/cache/images/pause.tar")},
    )
    plain = template("{}", [Path("/cache/etcd")], PATHS)
    return kubehost.with_kubelet(plain, runtime, sandbox_image="pause:3", paths=PATHS, api=("api.x", 443))


def test_containerd_runs_from_the_start_and_the_kubelet_when_the_agent_says_so(host_template: dict[str, Any]) -> None:
    made = Template.read(host_template)
    assert set(made.units) == {"containerd.service", "api-proxy.service", "protokube.service"}
    assert "--name=api.x" in made.units["api-proxy.service"]
    assert "protokube.local.node.kubelet" in made.startable["kubelet.service"][-1]


def test_the_hosts_see_all_programs_and_images(host_template: dict[str, Any]) -> None:
    assert host_template["path"].split(":")[:2] == ["/cache/containerd", "/cache/etcd"]
    shown = ["/state/laptop/programs", "/cache/images", "/cache/iptables"]
    assert host_template["shown"] == [*shown, "/state/laptop/images", "/state/laptop/prepared"]


def test_what_the_units_are_told_comes_back_as_it_was(host_template: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "order").write_text(host_template["files"][str(containerd.RUNTIME_CONFIG)])
    config = RuntimeConfig.read(tmp_path / "order")
    assert config.images == {"pause:3": "/cache/images/pause.tar"}
    assert (config.cgroup, config.plugins) == (f"protokube-{PATHS.switch}", "/cache/cni")
    assert config.loaded == "/state/laptop/images"


def test_a_host_of_an_older_version_shares_nothing_with_the_cache_which_may_lose_it(tmp_path: Path) -> None:
    older = {"cgroup": "c", "images": {}, "sandbox_image": "pause:3", "plugins": "/cni", "imported": "/cache/root"}
    (tmp_path / "order").write_text(json.dumps(older))

    assert RuntimeConfig.read(tmp_path / "order").prepared == ""


def test_the_kubelets_files_are_not_in_the_template_because_the_agent_writes_them(
    host_template: dict[str, Any],
) -> None:
    assert set(host_template["files"]) == {"/etc/protokube/agent.json", str(containerd.RUNTIME_CONFIG)}


def test_the_kubelet_is_started_with_the_flags_of_its_environment_file_and_its_own_address(
    kubelets: dict[str, KubeletConfig],
) -> None:
    text = kubelet_files(kubelets["master-a"])[KUBELET_ENV]
    command = kubelet.command(text, "10.0.0.1")
    assert (command[0], command[-1]) == ("kubelet", "--node-ip=10.0.0.1")
    assert f"--config={FILE}" in command


def test_the_kubelet_keeps_what_the_configuration_decided(config: Config, kubelets: dict[str, KubeletConfig]) -> None:
    decided = config.rendered["master-a"]["kubelet"]["files"][FILE]
    found = yaml.safe_load(kubelets["master-a"].files[FILE])
    changed = {name for name in decided if decided[name] != found[name]}
    assert changed <= {"evictionHard", "cgroupDriver", "failSwapOn"}
    assert found["staticPodPath"] == "/etc/kubernetes/manifests"


def test_a_full_disk_of_the_user_costs_no_pod_and_no_image(config: Config) -> None:
    found = kubelet.settings(config.rendered["master-a"]["kubelet"]["files"][FILE])
    assert {found["evictionHard"][f"{kind}.available"] for kind in ("nodefs", "imagefs")} == {"0%"}
    assert found["evictionHard"]["memory.available"] == "100Mi"
    assert found["imageGCHighThresholdPercent"] == 100


def test_containerds_file_is_toml_and_says_what_this_machine_needs() -> None:
    file = tomllib.loads(containerd.config("registry/pause:3", '/a "quoted" place'))
    runtime = file["plugins"]["io.containerd.grpc.v1.cri"]
    assert runtime["sandbox_image"] == "registry/pause:3"
    assert runtime["restrict_oom_score_adj"] is True
    assert runtime["cni"] == {"bin_dir": '/a "quoted" place', "conf_dir": "/etc/cni/net.d"}
    assert runtime["containerd"]["runtimes"]["runc"]["options"] == {"SystemdCgroup": False}


@pytest.mark.parametrize(("plugin", "ours"), [("kubenet", True), ("cilium", False)])
def test_the_agents_make_the_network_of_pods_only_where_nobody_else_does(
    kubelets: dict[str, KubeletConfig], plugin: str, ours: bool
) -> None:
    made = kubehost.as_nodes(wanted_of(), kubelets, plugin)
    assert (made.kubelet_kubeconfig, made.pod_network) == ("/var/lib/kubelet/kubeconfig", ours)


def test_launch_data_tell_an_agent_that_its_machine_is_a_node(kubelets: dict[str, KubeletConfig]) -> None:
    made = kubehost.as_nodes(wanted_of(), kubelets, "kubenet")
    assert from_tree(json.loads(json.dumps(to_tree(made)))) == made
    assert made.kubelets == kubelets


def test_a_host_is_asked_for_no_kernel_modules(config: Config, kubelets: dict[str, KubeletConfig]) -> None:
    wanted = from_config(config, nodes=True)
    made = kubehost.as_nodes(wanted, kubelets, "kubenet")
    assert any("/lib/modules" in each.also_reads for each in wanted.components)
    assert not any("/lib/modules" in each.also_reads for each in made.components)


def test_where_no_dns_controller_runs_there_is_no_image_of_ourselves(config: Config) -> None:
    assert list(kubehost.own_images(replace(cloud.images(config), dns_controller=""))) == []


def test_another_container_runtime_than_containerd_is_refused_in_words(tmp_path: Path) -> None:
    config = complete(read([("spec", SPEC.replace("masters: 1", "masters: 1, containerRuntime: docker"))]))
    programs = kubehost.Programs(kubernetes=tmp_path, etcd=tmp_path / "etcd", coredns=None)
    with pytest.raises(Refused, match="has containerd and no other container runtime"):
        kubehost.Nodes.of(config, programs, tmp_path)


def test_programs_that_are_not_here_have_no_image_of_the_network(config: Config, tmp_path: Path) -> None:
    programs = kubehost.Programs(kubernetes=tmp_path, etcd=tmp_path / "etcd", coredns=None)
    assert list(kubehost.network_images(cloud.images(config), programs, tmp_path / "busybox", tmp_path)) == []


def test_a_template_without_a_kubelet_again_runs_what_it_ran_before(host_template: dict[str, Any]) -> None:
    plain, again = template("{}", [], PATHS), kubehost.without_kubelet(host_template)

    for name in ("units", "startable", "files"):
        assert again[name] == plain[name]
    Template.read(again)
    assert kubehost.without_kubelet(again) == again
