"""A host with a real container runtime and a real kubelet: its programs, its images, its units.

Nothing is installed on the user's machine: Debian's packages are unpacked into our cache, and seen inside the hosts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from protokube.agent.wanted import MasterConfig
from protokube.local import binaries, cgroups, containerd, hosts, images, kubelet
from protokube.local.containerd import Order
from protokube.local.images import Image

PACKAGES = {
    "containerd": ("usr/bin",),
    "runc": ("usr/sbin",),
    "containernetworking-plugins": ("usr/lib/cni",),
    "busybox-static": (),
}
"""Debian's packages, and which of their folders a host has in its PATH."""
PLUGINS, BUSYBOX = ("containernetworking-plugins", "usr/lib/cni"), ("busybox-static", "bin/busybox")
COMPONENTS = {
    "kubeAPIServer": "kube-apiserver",
    "kubeControllerManager": "kube-controller-manager",
    "kubeScheduler": "kube-scheduler",
    "kubeProxy": "kube-proxy",
}
CONTAINERD, KUBELET = "containerd.service", "kubelet.service"


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Programs and images that all hosts share."""

    folders: tuple[Path, ...]
    """For their PATH; what lies in these folders is seen inside."""
    plugins: Path
    images: Mapping[str, Path]
    """Archives by the name of the image."""


def obtain(cluster: Mapping[str, Any], kubernetes: Path, etcd: Path, cache: Path) -> Runtime:
    """Have it all in the cache: `cluster` is the complete configuration, `kubernetes` the folder of its programs."""
    places = {package: binaries.unpack(package, cache) for package in PACKAGES}
    kept = cache / "images"
    wanted = wanted_images(cluster, kubernetes, etcd, places[BUSYBOX[0]] / BUSYBOX[1])
    archives = {image.name: images.keep(image, kept) for image in wanted}
    folders = [places[package] / inside for package, some in PACKAGES.items() for inside in some]
    return Runtime(folders=(*folders, kubernetes, kept), plugins=places[PLUGINS[0]] / PLUGINS[1], images=archives)


def wanted_images(cluster: Mapping[str, Any], kubernetes: Path, etcd: Path, busybox: Path) -> Sequence[Image]:
    """Under exactly the names that the manifests use; a program that is not there has no image."""
    found = [images.of_pause(cluster["containerd"]["sandboxImage"], busybox)]
    found += [images.of_program(name, etcd) for name in sorted({x["image"] for x in cluster["etcdClusters"].values()})]
    for field, program in COMPONENTS.items():
        name = (cluster.get(field) or {}).get("image")
        if name and (kubernetes / program).exists():
            found.append(images.of_program(name, kubernetes / program))
    return found


def as_nodes(wanted: MasterConfig, rendered: Mapping[str, Any], plugin: str) -> MasterConfig:
    """Masters that are nodes as well: their agents make the kubelet's keys and, for `kubenet`, the network of pods."""
    return replace(wanted, kubelet_kubeconfig=rendered["flags"]["kubeconfig"], pod_network=plugin == "kubenet")


def with_kubelet(
    template: Mapping[str, Any],
    runtime: Runtime,
    rendered: Mapping[str, Any],
    *,
    sandbox_image: str,
    switch: str,
) -> dict[str, Any]:
    """What a group's hosts are made from, with a real kubelet: `rendered` is what the configuration tells it."""
    order = Order(
        cgroup=cgroups.name(switch),
        images={name: str(archive) for name, archive in runtime.images.items()},
        sandbox_image=sandbox_image,
        plugins=str(runtime.plugins),
        kubelet=kubelet.command(rendered),
    )
    return {
        **template,
        "units": {CONTAINERD: hosts.python(containerd.__name__), **template["units"]},
        "startable": {**template["startable"], KUBELET: hosts.python(kubelet.__name__)},
        "path": os.pathsep.join([*(str(each) for each in runtime.folders), template["path"]]),
        "files": {**template["files"], **kubelet.files(rendered), str(containerd.ORDER): order.encode()},
    }
