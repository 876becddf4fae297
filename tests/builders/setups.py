"""Setups and facts of machines, for tests of nodeup: they fill in what a test does not care about."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from builders.config import ROOT, completed
from protokube.config.complete import Config, complete
from protokube.launch.boot import LaunchDocument
from protokube.launch.derive import from_config
from protokube.launch.derive_setup import Derived, derive_setup
from protokube.launch.setups.values import AssetSetup, MachineSetup
from protokube.nodeup.facts import Facts, PackageManager
from protokube.nodeup.values import File, Packages, Task, Unit
from protokube.spec.parse import parse

DEBIAN_12 = Facts(
    distribution="debian",
    distribution_version="12",
    available=(("containerd", "1.6.20~ds1-1+b1"), ("containernetworking-plugins", "1.1.1+ds1-3+b2")),
    systemd=252,
    memory=4 * 2**30,
)
DEBIAN_13 = replace(
    DEBIAN_12,
    distribution_version="13",
    available=(("containerd", "1.7.24~ds1-6+b4"), ("containernetworking-plugins", "1.1.1+ds1-3+b13")),
    systemd=257,
)
UBUNTU_2204 = replace(
    DEBIAN_12,
    distribution="ubuntu",
    distribution_version="22.04",
    like=("debian",),
    available=(("containerd", "1.7.24-0ubuntu1~22.04.1"), ("containernetworking-plugins", "0.9.1+ds1-1ubuntu0.1")),
    systemd=249,
    time_service="systemd-timesyncd.service",
)
UBUNTU_2404 = replace(
    UBUNTU_2204,
    distribution_version="24.04",
    available=(
        ("containerd", "1.7.24-0ubuntu1~24.04.1"),
        ("containernetworking-plugins", "1.1.1+ds1-3ubuntu0.2"),
    ),
    systemd=255,
)
ROCKY_9 = replace(
    DEBIAN_12,
    distribution="rocky",
    distribution_version="9.4",
    like=("rhel", "centos", "fedora"),
    package_manager=PackageManager.DNF,
    available=(("containernetworking-plugins", "1:1.4.0-6.el9_4"),),
    time_service="chronyd.service",
)
AMAZON_2023 = replace(
    ROCKY_9,
    distribution="amzn",
    distribution_version="2023",
    like=("fedora",),
    available=(("containerd", "2.0.5-1.amzn2023.0.1"),),
)
MACHINES = {
    "debian-12": DEBIAN_12, "debian-13": DEBIAN_13, "ubuntu-22.04": UBUNTU_2204, "ubuntu-24.04": UBUNTU_2404,
    "rocky-9": ROCKY_9, "amazon-2023": AMAZON_2023,
}  # fmt: skip
PROGRAMS = ("cni-plugins", "containerd", "kubectl", "kubelet", "runc")
EVERYTHING = ROOT / "tests" / "golden" / "machines" / "everything.yaml"
"""A spec with every setting of machines that protokube carries out."""
PLACE = "https://assets.example.com"


def an_asset(name: str, processor: str = "x86_64") -> AssetSetup:
    """Its digest is that of its name."""
    digest = hashlib.sha256(f"{name} {processor}".encode()).hexdigest()
    return AssetSetup(name=name, sha256=digest, urls=(f"{PLACE}/{processor}/{name}",), size=1000, processor=processor)


def assets(names: Sequence[str] = PROGRAMS) -> tuple[AssetSetup, ...]:
    return tuple(an_asset(name, processor) for name in names for processor in ("x86_64", "aarch64"))


@cache
def config_of(path: Path, version: str = "") -> Config:
    spec = parse([(path.name, path.read_text("utf-8"))])
    if version:
        spec = replace(spec, cluster={**spec.cluster, "kubernetesVersion": f"{version}.0"})
    return complete(spec)


def group_of(config: Config, role: str) -> str:
    """The first group of a role."""
    return next(name for name, group in config.groups.items() if group["role"] == role)


def derived(config: Config, role: str = "Master", group: str = "", **given: Any) -> Derived:
    group = group or group_of(config, role)
    given.setdefault("assets", assets())
    if config.groups[group]["role"] == "Master" and "agent" not in given:
        given["agent"] = LaunchDocument(
            master=from_config(config), store="memory://state", infrastructure={"kind": "memory"}, units="systemd"
        )
    return derive_setup(config, group, **given)


def a_setup(role: str = "Master", *groups: Any, **cluster: Any) -> MachineSetup:
    """The setup of a machine of a cluster on racks, unless the spec says otherwise."""
    usual = {"cloud": "metal"} if groups else {"cloud": "metal", "nodes": 1}
    return derived(completed(*groups, **(usual | cluster)), role).setup


def the_file(tasks: Sequence[Task], path: str) -> File:
    (found,) = (each for each in tasks if isinstance(each, File) and each.path == path)
    return found


def the_unit(tasks: Sequence[Task], name: str) -> Unit:
    (found,) = (each for each in tasks if isinstance(each, Unit) and each.name == name)
    return found


def packages(tasks: Sequence[Task]) -> set[str]:
    return {name for each in tasks if isinstance(each, Packages) for name in each.names}
