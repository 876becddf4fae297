"""Version compatibility: images and Kubernetes, etcd, the container runtime, admission plugins."""

from __future__ import annotations

import re

from protokube.config.draft import Draft
from protokube.config.etcd import OF_KUBERNETES
from protokube.config.etcd_versions import etcd_for, too_old
from protokube.spec.parse import GROUPS
from protokube.spec.version import Version, parse

OLDEST_ETCD, NEWEST_ETCD = Version(3, 4), Version(3, 6)
GONE_PLUGINS = {
    "InitialResources": (1, 11), "Initializers": (1, 14), "DenyEscalatingExec": (1, 21),
    "DenyExecOnPrivileged": (1, 21), "PodSecurityPolicy": (1, 25), "SecurityContextDeny": (1, 30),
    "PersistentVolumeLabel": (1, 31),
}  # fmt: skip
"""The version that removed each admission plugin; an API server does not start with an unknown one."""


def check_versions(cluster: Draft, root: Draft, version: Version) -> None:
    for key, etcd in cluster.each("etcdClusters"):
        _etcd(etcd, version if key in OF_KUBERNETES else None)
    _skew(cluster, version)
    _plugins(cluster, version)
    for name in (*SKEW, "kubelet", "masterKubelet"):
        _gates(cluster.under(name))
    for _, group in root.each(GROUPS):
        _gates(group.under("kubelet"))
    if cluster.has("docker") and cluster.get("containerRuntime") != "docker":
        hint = "remove `docker`, or set containerRuntime: docker (up to 1.23)"
        cluster.ledger.warn("docker", "is not used: the container runtime is containerd", hint)
    if cluster.get("containerRuntime") == "docker" and version >= (1, 24):
        message = f"Kubernetes {version.short} does not support Docker"
        cluster.ledger.problem("containerRuntime", message, "containerd runs the same images")


def _etcd(etcd: Draft, kubernetes: Version | None) -> None:
    """`kubernetes`: the version of Kubernetes, if that uses this etcd cluster."""
    text, path = etcd.get("version"), etcd.at("version")
    version = parse(text)
    if version is None:
        etcd.ledger.problem(path, f"{text!r} is not a version", "for example 3.6.8")
    elif version.series < OLDEST_ETCD:
        etcd.ledger.unfit(path, f"etcd {text} is older than 3.4, the oldest supported", "leave it out, or use 3.6.8")
    elif version.series > NEWEST_ETCD:
        message = (
            f"etcd {version.short} is newer than the newest known version: its file is that of {NEWEST_ETCD.short}"
        )
        etcd.ledger.warn(path, message)
    elif (3, 5, 0) <= version[:3] <= (3, 5, 2):
        etcd.ledger.problem(path, f"etcd {text} can corrupt its data", "3.5.3 or newer")
    elif kubernetes and not etcd.ledger.without_kubernetes and (why := too_old(version, kubernetes)):
        etcd.ledger.warn(path, why, f"use {etcd_for(kubernetes)}, or at least 3.5.13")


SKEW = {"kubeAPIServer": 0, "kubeControllerManager": 1, "kubeScheduler": 1, "kubeProxy": 3}


def _skew(cluster: Draft, version: Version) -> None:
    """How many minor versions a component may be behind; none may be ahead of the API server."""
    for field, behind in SKEW.items():
        component = cluster.under(field)
        found = re.search(r":v?(\d+\.\d+(\.\d+)?)", str(component.get("image")))
        tag = parse(found[1]) if found else None
        if tag is None:
            continue
        allowed = behind if field != "kubeProxy" or version >= (1, 28) else 2
        if not version.minor - allowed <= tag.minor <= version.minor:
            message = f"version {tag} is not compatible with Kubernetes {version}"
            hint = f"use the image of {version.short}; it may be {allowed} minor version{'s' * (allowed > 1)} older"
            hint = hint if allowed else f"use the image of {version.short}, or change kubernetesVersion"
            cluster.ledger.problem(component.at("image"), message, hint, "kubernetesVersion")


def _gates(component: Draft) -> None:
    """A gate is true or false; any other value would mean false in a file, and a component would not start with it."""
    gates = component.at("featureGates")
    if component.ledger.source(gates) != gates:  # inherited: reported at its source
        return
    for name, value in (component.get("featureGates") or {}).items():
        if value.lower() not in ("true", "false"):
            component.ledger.problem(f"{gates}.{name}", f"{value!r} is not true or false")


def _plugins(cluster: Draft, version: Version) -> None:
    api = cluster.under("kubeAPIServer")
    for name in ("enableAdmissionPlugins", "appendAdmissionPlugins", "disableAdmissionPlugins"):
        for index, plugin in enumerate(api.get(name) or []):
            gone = GONE_PLUGINS.get(plugin)
            if gone and version >= gone:
                message = f"Kubernetes {gone[0]}.{gone[1]} removed the admission plugin {plugin}"
                api.ledger.unfit(api.at(f"{name}[{index}]"), message, "remove it: an API server does not start with it")
    clash = set(api.get("enableAdmissionPlugins") or []) & set(api.get("disableAdmissionPlugins") or [])
    if clash:
        message = f"{', '.join(sorted(clash))} is both enabled and disabled"
        api.ledger.problem(api.at("disableAdmissionPlugins"), message)
