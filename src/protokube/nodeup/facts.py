"""What is known of a machine before anything is changed: values only; `host_facts` reads them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PackageManager(StrEnum):
    APT = "apt"
    DNF = "dnf"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One machine, as its operating system describes it."""

    distribution: str
    """ID of os-release: `debian`."""
    distribution_version: str
    """VERSION_ID of os-release: `12`; empty for rolling ones."""
    like: tuple[str, ...] = ()
    """ID_LIKE of os-release."""
    processor: str = "x86_64"
    """As uname calls it."""
    package_manager: PackageManager = PackageManager.APT
    available: tuple[tuple[str, str], ...] = ()
    """Versions that the package manager would install, by package: of containerd and a few others that we ask for."""
    cgroup2: bool = True
    """Whether /sys/fs/cgroup is the unified hierarchy. The cgroup driver does not follow from it: the configuration of
    the kubelet says which one, and the container runtime gets the same."""
    systemd: int = 0
    """The version of the systemd that runs; 0 if none does, as in the root of an image."""
    memory: int = 0
    """Bytes."""
    swap: bool = False
    """Whether any swap space is in use."""
    host_name: str = ""
    clock_error: float | None = None
    """Seconds by which its clock is off, as far as anybody told; None if nobody did."""
    container: bool = False
    """Whether this is a container: the kernel's clock, modules, swap and sysctls outside `net` belong to the host."""
    image: bool = False
    """Whether this is the root of an image: nothing runs in it, and no kernel is its own."""
    time_service: str = ""
    """The active unit that keeps its clock: `chrony.service`. Packages of others would remove its package."""
    cluster: str = ""
    """The cluster that this machine was made part of by an earlier run; empty on a new one."""
    node_name: str = ""
    """Its name in that cluster; empty if that run was told none."""
