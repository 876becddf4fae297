"""Why a machine cannot become what it should be: each reason in words, and all of them at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.config import completed
from builders.setups import DEBIAN_12, MACHINES, a_setup, an_asset, assets, derived
from protokube.errors import Refused
from protokube.launch.setups.values import MachineSetup
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.model.checks import Unfit, problems
from protokube.nodeup.model.whole import tasks_of


def reasons(setup: MachineSetup, **facts: Any) -> list[str]:
    return [str(each) for each in problems(setup, replace(DEBIAN_12, **facts))]


def the_reason(setup: MachineSetup, **facts: Any) -> str:
    (found,) = reasons(setup, **facts)
    return found


@pytest.mark.parametrize("facts", MACHINES.values(), ids=MACHINES.keys())
def test_nothing_is_wrong_with_a_fresh_machine_of_any_supported_distribution(facts: Facts) -> None:
    assert problems(a_setup(), facts) == []


def test_every_reason_is_shown_at_once_and_nothing_is_changed() -> None:
    setup = replace(a_setup("Node"), node_name="Rack_1")
    facts = replace(
        DEBIAN_12, distribution_version="11", systemd=0, swap=True, cgroup2=False, cluster="old.example.com"
    )

    with pytest.raises(Unfit) as refused:
        tasks_of(setup, facts)

    assert isinstance(refused.value, Refused)
    assert (
        str(refused.value)
        == """\
this machine cannot become a node of dev.example.com, for 6 reasons; nothing was changed
  distribution: debian 11 is too old
    hint: supported are Debian 12, Ubuntu 22.04, Rocky Linux 9, Amazon Linux 2023, later ones and their relatives
  systemd: it does not run here
    hint: protokube starts everything by systemd; use an image that has it
  node name: 'Rack_1' is not the name of a Node
    hint: at most 63 small letters, digits, dashes and dots
  cluster: it belongs to old.example.com already
    hint: reset it, or remove /etc/protokube/machine.json if nothing on it is needed
  cgroups: they are of version 1, with which kubelet 1.36.4 does not start
    hint: boot with systemd.unified_cgroup_hierarchy=1, or set kubelet.failCgroupV1: false
  swap: it is on, with which the kubelet does not start
    hint: `swapoff -a`, and remove it from /etc/fstab; or set kubelet.failSwapOn: false"""
    )


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"distribution": "gentoo", "distribution_version": ""}, "distribution: gentoo is not supported"),
        ({"distribution": "alpine", "package_manager": PackageManager.NONE}, "packages: it has neither apt nor dnf"),
        ({"distribution": "ubuntu", "distribution_version": "20.04"}, "distribution: ubuntu 20.04 is too old"),
        ({"distribution": "rocky", "distribution_version": "8.10"}, "distribution: rocky 8.10 is too old"),
        ({"distribution": "amzn", "distribution_version": "2"}, "distribution: amzn 2 is too old"),
    ],
)
def test_an_unsupported_system_is_refused_by_its_name(facts: dict[str, Any], reason: str) -> None:
    assert the_reason(a_setup(), **facts).startswith(reason)


@pytest.mark.parametrize(
    "facts",
    [
        {"distribution": "debian", "distribution_version": ""},
        {"distribution": "linuxmint", "like": ("ubuntu", "debian")},
        {"distribution": "ubuntu", "distribution_version": "22.04"},
        {"distribution": "ubuntu", "distribution_version": "26.04"},
    ],
    ids=str,
)
def test_relatives_rolling_and_later_ones_are_welcome(facts: dict[str, Any]) -> None:
    assert reasons(a_setup(), **facts) == []


def test_a_machine_keeps_its_name_in_the_cluster() -> None:
    setup = replace(a_setup(), node_name="rack-2")

    assert "it is the node rack-1 already, and should become rack-2" in the_reason(
        setup, cluster=setup.cluster, node_name="rack-1"
    )
    assert reasons(setup, cluster=setup.cluster, node_name="rack-2") == []
    assert reasons(setup, cluster=setup.cluster) == []


@pytest.mark.parametrize("name", ["", "a", "rack-1.example.com", "10-0-0-1", "a" * 63])
def test_names_of_nodes_that_kubernetes_accepts(name: str) -> None:
    assert reasons(replace(a_setup(), node_name=name)) == []


@pytest.mark.parametrize("name", ["-a", "a-", "A", "a_b", "a..b", "a" * 64, "a b", "ä"])
def test_names_of_nodes_that_kubernetes_does_not_accept(name: str) -> None:
    assert "is not the name of a Node" in the_reason(replace(a_setup(), node_name=name))


@pytest.mark.parametrize(
    ("version", "settings", "fits"),
    [
        ("1.34.10", {}, True), ("1.35.7", {}, False), ("1.36.4", {"failCgroupV1": False}, True),
        ("1.36.4", {"failCgroupV1": True}, False),
    ],
)  # fmt: skip
def test_a_kubelet_runs_on_cgroup_v1_up_to_1_34_or_where_it_is_told_to(
    version: str, settings: dict[str, Any], fits: bool
) -> None:
    assert (reasons(a_setup(kubernetesVersion=version, kubelet=settings), cgroup2=False) == []) is fits


@pytest.mark.parametrize(
    "cluster",
    [
        {"kubelet": {"failSwapOn": False}},
        {"kubelet": {"failSwapOn": False}, "kubernetesVersion": "1.20.15"},
        {"masterKubelet": {"failSwapOn": False}},
    ],
    ids=str,
)
def test_swap_may_be_on_where_the_kubelet_is_told_to_bear_it(cluster: dict[str, Any]) -> None:
    assert reasons(a_setup(**cluster), swap=True) == []
    assert reasons(a_setup(), swap=True) != []


def test_an_image_is_not_judged_by_the_kernel_that_runs_here() -> None:
    assert reasons(a_setup(), image=True, systemd=0, swap=True, cgroup2=False) == []


def test_a_clock_that_nobody_may_set_has_to_be_right() -> None:
    off = "it is 3600 s behind, with which no certificate can be judged"

    assert off in the_reason(a_setup(ntp={"managed": False}), clock_error=-3600.0)
    assert "set the clock of the host of this container" in the_reason(a_setup(), clock_error=3600.0, container=True)
    assert reasons(a_setup(), clock_error=-3600.0) == []
    assert reasons(a_setup(ntp={"managed": False}), clock_error=20.0) == []


def test_a_processor_that_nothing_was_made_for_is_named() -> None:
    found = reasons(a_setup(), processor="riscv64", available=())

    assert [each.splitlines()[0] for each in found] == [
        "kubelet: there is none for riscv64 in the launch data",
        "containerd: containerd 1.6 or later is wanted, the distribution has none, and there is no archive of"
        " containerd and runc",
        "network plugins: the distribution has no containernetworking-plugins, and there is no archive of cni-plugins"
        " for riscv64",
    ]  # fmt: skip


def test_images_and_programs_need_their_assets_for_this_processor() -> None:
    given = (*assets(), an_asset("pause.tar", "aarch64"))
    setup = derived(completed(cloud="metal"), assets=given, images={"pause:1": "pause.tar"}).setup

    assert the_reason(setup).startswith("pause.tar: there is none for x86_64")
    assert reasons(setup, processor="aarch64") == []


def test_containerd_and_the_kubelet_use_one_cgroup_driver() -> None:
    override = (
        'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\nSystemdCgroup = false\n'
    )
    key = 'plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options.SystemdCgroup'

    for containerd in ({"configOverride": override}, {"configAdditions": {key: False}}):
        assert the_reason(a_setup(containerd=containerd)).startswith(
            "cgroup driver: containerd is told to use cgroupfs, and the kubelet systemd"
        )
        assert reasons(a_setup(containerd=containerd, kubelet={"cgroupDriver": "cgroupfs"})) == []


def test_containerd_listens_where_the_kubelet_connects() -> None:
    setup = a_setup(kubelet={"containerRuntimeEndpoint": "unix:///run/crio/crio.sock"})

    assert "and the kubelet connects to unix:///run/crio/crio.sock" in the_reason(setup)
    assert reasons(a_setup(containerd={"address": "/run/own.sock"})) == []


def test_an_old_containerd_has_no_node_resource_interface() -> None:
    setup = a_setup(containerd={"nri": {"enabled": True}})

    assert the_reason(setup).startswith("containerd: 1.6.20 has no Node Resource Interface")
    assert problems(setup, MACHINES["debian-13"]) == []
