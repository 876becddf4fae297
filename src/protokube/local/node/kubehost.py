"""A host with a real container runtime and a real kubelet: its programs, images and units.

Nothing is installed on the user's machine: Debian packages are unpacked into our cache, and mounted inside the hosts.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from protokube.binaries import executables
from protokube.config.complete import Config
from protokube.errors import Problem, ProtokubeError, Refused
from protokube.images import build, clusterdns, proxyimage, pythonimage
from protokube.images.build import Image
from protokube.launch import cloud
from protokube.launch.components import MODULES
from protokube.launch.derive import master_kubelets
from protokube.launch.machine import KubeletConfig, MasterConfig
from protokube.local.base import ourselves
from protokube.local.base.paths import Paths
from protokube.local.host import cgroups, hosts
from protokube.local.node import containerd, hosttools, imported, kubelet, prepared
from protokube.local.node.containerd import RuntimeConfig
from protokube.manifests.component import ComponentPod

CONTAINERD_PACKAGE = "containerd"
PACKAGES = {
    CONTAINERD_PACKAGE: ("usr/bin",),
    "runc": ("usr/sbin",),
    "containernetworking-plugins": ("usr/lib/cni",),
    "busybox-static": (),
}
"""Debian packages, and their folders for the PATH of a host."""
PLUGINS, BUSYBOX = ("containernetworking-plugins", "usr/lib/cni"), ("busybox-static", "bin/busybox")
CONTAINERD, KUBELET, PROXY = "containerd.service", "kubelet.service", "api-proxy.service"
PROXY_ADDRESS = "127.0.0.1:3988"
RUNTIME = "set `containerRuntime: containerd` in the spec, or leave it out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Programs from which images are built."""

    kubernetes: Path
    """The folder of the Kubernetes programs."""
    etcd: Path
    coredns: Path | None
    """None: a stand-in replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Programs and images that all hosts share."""

    folders: tuple[Path, ...]
    """Folders for their PATH, mounted inside."""
    plugins: Path
    shown: tuple[Path, ...]
    """More folders to mount inside: image archives and libraries."""
    images: Mapping[str, Path]
    """Archives by image name."""
    prepared: Path | None = None
    """A root directory of containerd that has the images."""
    unprepared: Problem | None = None
    """Why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Masters that also run a kubelet."""

    runtime: Runtime
    sandbox_image: str

    @staticmethod
    def of(config: Config, programs: Programs, cache: Path) -> Nodes:
        """Obtain everything they need in the cache."""
        names = cloud.images(config)
        if not names.sandbox:
            raise Refused("a kubelet of the local cloud has containerd and no other container runtime", hint=RUNTIME)
        return Nodes(runtime=obtain(names, programs, cache), sandbox_image=names.sandbox)

    def template(self, plain: Mapping[str, Any], wanted: MasterConfig, paths: Paths) -> dict[str, Any]:
        api = (wanted.api_internal_name, wanted.api_port)
        runtime = replace(self.runtime, prepared=shared_images(self.runtime.prepared, paths))
        return with_kubelet(plain, runtime, sandbox_image=self.sandbox_image, paths=paths, api=api)


def obtain(names: cloud.Images, programs: Programs, cache: Path) -> Runtime:
    """Obtain programs and images in the cache."""
    places = {package: executables.unpack(package, cache) for package in PACKAGES}
    kept = cache / "images"
    busybox = places[BUSYBOX[0]] / BUSYBOX[1]
    released = [
        *wanted_images(names, programs.kubernetes, programs.etcd, busybox),
        *network_images(names, programs, busybox, cache),
    ]
    archives = {image.name: build.keep(image, kept) for image in released}
    own = {image.name: build.keep(image, kept) for image in own_images(names)}
    root, unprepared = imported_images(archives, own, ctr(cache).parent, kept)
    archives |= own
    folders = [places[package] / inside for package, some in PACKAGES.items() for inside in some]
    tools = hosttools.obtain(cache)
    return Runtime(
        folders=(tools.folder, *folders, programs.kubernetes),
        plugins=places[PLUGINS[0]] / PLUGINS[1],
        shown=(kept, *tools.shown),
        images=archives,
        prepared=root,
        unprepared=unprepared,
    )


def imported_images(
    released: Mapping[str, Path], own: Mapping[str, Path], programs: Path, folder: Path
) -> tuple[Path | None, Problem | None]:
    """None, and why, if they cannot be imported here, as in a sandbox that forbids mounts or on a full disk.

    Our own image, which changes with every change of the code, is imported beside the others, not together with them.
    """
    try:
        base = imported.obtain(released, programs, folder, containerd.DISABLED)
        if not own:
            return base, None
        return imported.obtain({**released, **own}, programs, folder, containerd.DISABLED, base), None
    except (OSError, subprocess.SubprocessError) as why:
        reason = (getattr(why, "stderr", None) or str(why)).strip().rpartition("\n")[2]
        return None, Problem(
            path="images",
            message=f"each host imports them itself, which takes time and disk, since it failed here: {reason}",
            hint=f"is there room in {folder}, and may root mount here?",
        )


def shared_images(root: Path | None, paths: Paths) -> Path | None:
    """The root of the cache, kept in the folder of the cluster; None if that is not possible: hosts import images."""
    try:
        return prepared.link(root, paths.prepared) if root else None
    except OSError:
        return None


def ctr(cache: Path) -> Path:
    """containerd's client; at the same path in every host."""
    return executables.unpack(CONTAINERD_PACKAGE, cache) / PACKAGES[CONTAINERD_PACKAGE][0] / "ctr"


def wanted_images(names: cloud.Images, kubernetes: Path, etcd: Path, busybox: Path) -> Sequence[Image]:
    """Images under the names that the manifests use; a missing program gets no image."""
    found = [build.of_pause(names.sandbox, busybox)]
    found += [build.of_program(name, etcd) for name in names.etcd]
    here = {program: name for program, name in names.control_plane.items() if (kubernetes / program).exists()}
    return [*found, *(build.of_program(name, kubernetes / program) for program, name in here.items())]


def network_images(names: cloud.Images, programs: Programs, busybox: Path, cache: Path) -> Iterator[Image]:
    """The images of kube-proxy and of the cluster DNS, with tools from Debian packages."""
    if names.proxy and (program := programs.kubernetes / "kube-proxy").exists():
        yield proxyimage.obtain(names.proxy, program, cache)
    if not names.core_dns:
        return
    if programs.coredns:
        yield clusterdns.image(names.core_dns, programs.coredns)
    elif (program := programs.kubernetes / clusterdns.ASKING).exists():
        with suppress(ProtokubeError):  # `up` has warned that pods will find no names
            yield clusterdns.obtain_stand_in(names.core_dns, program, busybox, cache)


def own_images(names: cloud.Images) -> Iterator[Image]:
    """The image of protokube itself, if a pod runs it."""
    if names.dns_controller:
        yield pythonimage.image(names.dns_controller, names.dns_controller_extras)


def with_nodes(wanted: MasterConfig, config: Config) -> MasterConfig:
    """Masters that also run a kubelet, adapted to hosts of the local cloud."""
    kubelets = master_kubelets(config, kubelet.settings)
    return as_nodes(wanted, kubelets, cloud.cloud_config(config).network_plugin)


def as_nodes(wanted: MasterConfig, kubelets: Mapping[str, KubeletConfig], plugin: str) -> MasterConfig:
    """Masters that also run a kubelet: their agents create its files, its keys and, for `kubenet`, the pod network."""
    return replace(
        wanted,
        components=tuple(_without_modules(each) for each in wanted.components),
        kubelets=dict(kubelets),
        kubelet_kubeconfig=next(iter(kubelets.values())).kubeconfig,
        kubelet_api=f"https://{PROXY_ADDRESS}",
        pod_network=plugin == "kubenet",
    )


def _without_modules(component: ComponentPod) -> ComponentPod:
    """A host shares the machine's kernel and loads no modules; the folder may not even exist."""
    return replace(component, also_reads=tuple(each for each in component.also_reads if each != MODULES))


def with_kubelet(
    template: Mapping[str, Any],
    runtime: Runtime,
    *,
    sandbox_image: str,
    paths: Paths,
    api: tuple[str, int],
) -> dict[str, Any]:
    """The template of the hosts, with a real kubelet; `api` is the name and port of the API servers.

    The kubelet's files are not part of it: the agent writes them, and writes them again after a change.
    """
    config = RuntimeConfig(
        cgroup=cgroups.name(paths.switch),
        images={name: str(archive) for name, archive in runtime.images.items()},
        sandbox_image=sandbox_image,
        plugins=str(runtime.plugins),
        loaded=str(paths.images),
        prepared=str(runtime.prepared or ""),
    )
    return {
        **template,
        "units": {CONTAINERD: hosts.python(containerd.__name__), PROXY: proxy(*api), **template["units"]},
        "startable": {**template["startable"], KUBELET: hosts.python(kubelet.__name__)},
        "path": os.pathsep.join([*(str(each) for each in runtime.folders), template["path"]]),
        "shown": [*template["shown"], *(str(each) for each in (*runtime.shown, paths.images, paths.prepared))],
        "files": {**template["files"], str(containerd.RUNTIME_CONFIG): config.encode()},
    }


def without_kubelet(template: Mapping[str, Any]) -> dict[str, Any]:
    """The template of hosts whose pods the built-in runner runs. More programs than they need stay in their PATH."""
    file = str(containerd.RUNTIME_CONFIG)
    return {
        **template,
        "units": {name: command for name, command in template["units"].items() if name not in (CONTAINERD, PROXY)},
        "startable": {**template["startable"], KUBELET: []},
        "files": {name: text for name, text in template["files"].items() if name != file},
    }


def proxy(name: str, port: int) -> list[str]:
    """The command of the proxy that connects a kubelet to a healthy API server."""
    return [
        *ourselves.command(),
        "api-proxy",
        f"--name={name}",
        f"--port={port}",
        f"--listen={PROXY_ADDRESS}",
    ]
