"""Where projects publish the files that a machine needs, and where their checksums. Pure.

One file per version and processor, and a file with its sha256: one alone, or lines of `DIGEST  NAME`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from protokube.binaries.release import OFFICIAL as KUBERNETES_RELEASES
from protokube.config.complete import Config
from protokube.config.images import CONTAINERD, by_version
from protokube.launch import cloud
from protokube.spec import version as versions

GITHUB = "https://github.com"
Placed = Callable[[str, str], str]
"""A path below a release's URL, for a version and an architecture as releases call it: `amd64`."""
RUNC, CNI_PLUGINS = "1.3.0", "1.7.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One file of a project's releases."""

    asset: str
    """Name of the asset."""
    project: str
    """Whose mirrors have it: `kubernetes`."""
    official: str
    place: Placed
    sums: Placed


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A file of a version."""

    published: Published
    version: str
    image: str = ""
    """Of an archive of an image: its name."""


def _kubernetes(name: str) -> Published:
    return Published(
        asset=name,
        project="kubernetes",
        official=KUBERNETES_RELEASES,
        place=lambda version, machine: f"v{version}/bin/linux/{machine}/{name}",
        sums=lambda version, machine: f"v{version}/bin/linux/{machine}/{name}.sha256",
    )


PROGRAMS = ("kubelet", "kubectl")
ARCHIVES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
"""Components whose images are part of a release, as archives."""
KUBERNETES = {name: _kubernetes(name) for name in (*PROGRAMS, *(f"{each}.tar" for each in ARCHIVES))}
OTHERS = {
    each.asset: each
    for each in (
        Published(
            asset="containerd",
            project="containerd",
            official=f"{GITHUB}/containerd/containerd/releases/download",
            place=lambda version, machine: f"v{version}/containerd-{version}-linux-{machine}.tar.gz",
            sums=lambda version, machine: f"v{version}/containerd-{version}-linux-{machine}.tar.gz.sha256sum",
        ),
        Published(
            asset="runc",
            project="runc",
            official=f"{GITHUB}/opencontainers/runc/releases/download",
            place=lambda version, machine: f"v{version}/runc.{machine}",
            sums=lambda version, _: f"v{version}/runc.sha256sum",
        ),
        Published(
            asset="cni-plugins",
            project="cni",
            official=f"{GITHUB}/containernetworking/plugins/releases/download",
            place=lambda version, machine: f"v{version}/cni-plugins-linux-{machine}-v{version}.tgz",
            sums=lambda version, machine: f"v{version}/cni-plugins-linux-{machine}-v{version}.tgz.sha256",
        ),
        Published(
            asset="crictl",
            project="crictl",
            official=f"{GITHUB}/kubernetes-sigs/cri-tools/releases/download",
            place=lambda version, machine: f"v{version}/crictl-v{version}-linux-{machine}.tar.gz",
            sums=lambda version, machine: f"v{version}/crictl-v{version}-linux-{machine}.tar.gz.sha256",
        ),
    )
}
PROJECTS = ("kubernetes", *(each.project for each in OTHERS.values()))


def needed(config: Config, *, master: bool, group: str = "") -> tuple[Wanted, ...]:
    """The published files that a machine of this role needs, images of its static pods included.

    `group`: whose containerd it is, where that has settings of its own.
    """
    version = kubernetes_version(config)
    parsed = versions.parse(version) or versions.DEFAULT
    own = config.groups[group].get("containerd") if group else None
    tree = own or config.cluster.get("containerd") or {}
    runtime = tree.get("version") or by_version(CONTAINERD, parsed)
    runc = (tree.get("runc") or {}).get("version") or RUNC
    numbers = {
        "containerd": str(runtime).removeprefix("v"),
        "runc": str(runc).removeprefix("v"),
        "cni-plugins": CNI_PLUGINS,
        "crictl": f"{parsed.major}.{parsed.minor}.0",
    }
    files = [Wanted(published=KUBERNETES[name], version=version) for name in PROGRAMS]
    files += [Wanted(published=OTHERS[name], version=number) for name, number in numbers.items()]
    images = image_names(config, master=master)
    files += [
        Wanted(published=KUBERNETES[f"{name}.tar"], version=version, image=images[name])
        for name in ARCHIVES
        if name in images
    ]
    return tuple(files)


def kubernetes_version(config: Config) -> str:
    """As releases name it."""
    return str(config.cluster["kubernetesVersion"]).removeprefix("v")


def image_names(config: Config, *, master: bool) -> dict[str, str]:
    """The images of a role's static pods and of what every node runs, by component."""
    names = cloud.images(config)
    found = {"pause": names.sandbox, "kube-proxy": names.proxy, "coredns": names.core_dns}
    if master:
        found |= names.control_plane
        found |= {f"etcd-{number}" if number else "etcd": name for number, name in enumerate(names.etcd)}
        found["dns-controller"] = names.dns_controller
    return {component: name for component, name in found.items() if name}
