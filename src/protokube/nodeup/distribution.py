"""What distributions call things: packages, and the units that keep the clock. Values only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from protokube.nodeup.facts import Facts, PackageManager
from protokube.spec.version import Version

OLDEST = {
    "debian": (12,), "ubuntu": (22, 4), "rocky": (9,), "rhel": (9,), "almalinux": (9,), "centos": (9,), "ol": (9,),
    "amzn": (2023,),
}  # fmt: skip
"""The first version of each distribution that protokube supports, by its ID."""
UPSTREAM = re.compile(r"(?:[0-9]+:)?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The words of one package manager."""

    base: tuple[str, ...]
    """What the kubelet, the agent and network plugins call."""
    time: str
    """The package that keeps the clock, where nothing does."""
    time_units: Mapping[str, str]
    """The units of all packages that do, by package."""
    cni: str
    cni_folder: str
    """Where its package puts the network plugins."""
    xfs: str = "xfsprogs"


APT = Names(
    base=(
        "ca-certificates", "conntrack", "dbus", "e2fsprogs", "ethtool", "iproute2", "iptables", "kmod", "logrotate",
        "socat", "util-linux",
    ),
    time="systemd-timesyncd",
    time_units={
        "chrony": "chrony.service", "ntpsec": "ntpsec.service", "openntpd": "openntpd.service",
        "systemd-timesyncd": "systemd-timesyncd.service",
    },
    cni="containernetworking-plugins",
    cni_folder="/usr/lib/cni",
)  # fmt: skip
DNF = Names(
    base=(
        "ca-certificates", "conntrack-tools", "container-selinux", "dbus", "e2fsprogs", "ethtool", "hostname",
        "iproute", "iproute-tc", "iptables-nft", "kmod", "logrotate", "socat", "util-linux",
    ),
    time="chrony",
    time_units={"chrony": "chronyd.service"},
    cni="containernetworking-plugins",
    cni_folder="/usr/libexec/cni",
)  # fmt: skip

ASKED = ("containerd", "containerd.io", "containernetworking-plugins")
"""Packages whose available version decides something."""


def names(facts: Facts) -> Names:
    return DNF if facts.package_manager is PackageManager.DNF else APT


def upstream(version: str) -> Version | None:
    """The upstream version in one of a package: `1.6.20~ds1-1+b1` is 1.6.20; None if it begins with none."""
    found = UPSTREAM.match(version)
    return Version(int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def available(facts: Facts, package: str) -> Version | None:
    """The upstream version of a package that can be installed; None if there is none."""
    text = dict(facts.available).get(package)
    return upstream(text) if text else None


def is_too_old(facts: Facts) -> bool:
    oldest = OLDEST.get(facts.distribution)
    numbers = tuple(int(each) for each in re.findall(r"[0-9]+", facts.distribution_version))
    return bool(oldest and numbers and numbers < oldest[: len(numbers)])


def is_known(facts: Facts) -> bool:
    """Whether it is one of those, or says that it is like one of them."""
    return facts.distribution in OLDEST or any(each in ("debian", "rhel", "fedora", *OLDEST) for each in facts.like)
