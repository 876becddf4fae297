"""The configuration file of containerd, in the form of its version, with the cgroup driver of the kubelet.

containerd 1.6 and 1.7 read version 2 of the format, containerd 2 version 3; it also converts version 2, which is
written where nobody knows its version.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from protokube.launch.setups.values import MachineSetup
from protokube.nodeup import toml
from protokube.nodeup.facts import Facts
from protokube.nodeup.model import kubelet
from protokube.spec.version import Version

HOSTS = "/etc/containerd/certs.d"
PLUGINS, NETWORKS = "/opt/cni/bin", "/etc/cni/net.d"
HEAD = "# Written by protokube; `containerd` in the spec changes it.\n"
CRI, IMAGES, RUNTIME = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"
NRI, RUNC = "io.containerd.nri.v1.nri", "io.containerd.runc.v2"
SYSTEMD_CGROUP = "SystemdCgroup"


def text(setup: MachineSetup, facts: Facts, version: Version | None) -> str:
    if setup.runtime.config:
        return setup.runtime.config.rstrip("\n") + "\n"
    tree = _tree(setup, facts, version)
    for key, value in setup.runtime.additions.items():
        _merge(tree, _placed(tomllib.loads(f"{key} = 0"), value))
    return HEAD + toml.dumps(tree)


def hosts(setup: MachineSetup) -> dict[str, str]:
    """By path, the mirrors of each registry; the registry itself is asked last."""
    found = {}
    for registry, urls in sorted(setup.runtime.mirrors.items()):
        name = registry.partition("://")[2] or registry
        folder = "_default" if name == "*" else name.strip("/")
        tree = {"host": {url: {"capabilities": ["pull", "resolve"]} for url in urls}}
        found[f"{HOSTS}/{folder}/hosts.toml"] = toml.dumps(tree)
    return found


def drivers(config: str) -> set[str]:
    """The cgroup drivers that a configuration file gives to runc, under whatever name."""
    found: set[str] = set()
    queue: list[Any] = [tomllib.loads(config)]
    while queue:
        tree = queue.pop()
        if isinstance(tree, dict):
            if isinstance(tree.get(SYSTEMD_CGROUP), bool):
                found.add("systemd" if tree[SYSTEMD_CGROUP] else "cgroupfs")
            queue += tree.values()
    return found


def _tree(setup: MachineSetup, facts: Facts, version: Version | None) -> dict[str, Any]:
    wanted = setup.runtime
    is_new = version is not None and version >= (2, 0)
    tree: dict[str, Any] = {"version": 3 if is_new else 2, "root": wanted.root, "state": wanted.state}
    tree["grpc"] = {"address": wanted.address}
    if wanted.log_level:
        tree["debug"] = {"level": wanted.log_level}
    runtime: dict[str, Any] = {"enable_selinux": True} if wanted.selinux else {}
    if facts.container:
        runtime["restrict_oom_score_adj"] = True  # a container may not permit lower values
    folders = {"bin_dirs": [PLUGINS]} if version is not None and version >= (2, 1) else {"bin_dir": PLUGINS}
    runtime["cni"] = {**folders, "conf_dir": NETWORKS}
    runc = {SYSTEMD_CGROUP: kubelet.cgroup_driver(setup.kubelet) == "systemd"}
    runtime["containerd"] = {"runtimes": {"runc": {"runtime_type": RUNC, "options": runc}}}
    registry = {"registry": {"config_path": HOSTS}}
    pause = wanted.sandbox_image
    if is_new:
        images = {"pinned_images": {"sandbox": pause}} if pause else {}
        plugins = {IMAGES: images | registry, RUNTIME: runtime}
    else:
        plugins = {CRI: ({"sandbox_image": pause} if pause else {}) | runtime | registry}
    nri: dict[str, Any] = dict(wanted.nri_timeouts)
    if wanted.nri is not None:
        nri = {"disable": not wanted.nri, **nri}
    tree["plugins"] = plugins | ({NRI: nri} if nri else {})
    return tree


def _placed(key: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """A value under a dotted key, which is given as nested tables."""
    ((name, rest),) = key.items()
    return {name: _placed(rest, value) if isinstance(rest, Mapping) else value}


def _merge(tree: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, Mapping) and isinstance(tree.get(name), dict):
            _merge(tree[name], value)
        else:
            tree[name] = value
