"""The paths on a machine that protokube writes, and others where a user's file cannot be."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from protokube.config import dnscontroller
from protokube.config.files import ASSETS
from protokube.config.flags import COMPONENTS
from protokube.config.places import DIRECTORY, own_folder
from protokube.spec.decode import Tree

MANIFESTS = "/etc/kubernetes/manifests"
FOLDERS = ("/etc/protokube", "/run/protokube", "/var/lib/protokube")
KERNEL = ("/dev", "/proc", "/sys")
VOLUMES = "/mnt/master-"
"""Prefix of the mount points of etcd volumes."""
POD_NETWORK, HOSTS = "/etc/cni/net.d/10-protokube.conflist", "/etc/hosts"
OF_NODEUP = (
    "/etc/containerd/config.toml", "/etc/default/kubelet", "/etc/default/kubelet-machine",
    "/etc/logrotate.d/protokube", "/etc/modules-load.d/protokube.conf", "/etc/sysctl.d/99-protokube.conf",
    "/etc/systemd/system/containerd.service", "/etc/systemd/system/kubelet.service",
    "/etc/systemd/system/protokube-agent.service", "/etc/systemd/system/protokube-api-proxy.service",
    "/usr/local/bin/kubectl", "/usr/local/bin/kubelet", "/usr/local/bin/protokube", "/usr/local/sbin/runc",
)  # fmt: skip
"""What nodeup writes on every machine; what it writes only at the wish of a spec, it checks itself."""
WELL_KNOWN = frozenset((
    "/", "/bin", "/boot", "/etc", "/etc/apt", "/etc/cni", "/etc/cni/net.d", "/etc/containerd", "/etc/cron.d",
    "/etc/default", "/etc/docker", "/etc/kubernetes", "/etc/logrotate.d", "/etc/modprobe.d", "/etc/modules-load.d",
    "/etc/profile.d", "/etc/security", "/etc/ssh", "/etc/ssl", "/etc/ssl/certs", "/etc/sudoers.d", "/etc/sysctl.d",
    "/etc/systemd", "/etc/systemd/system", "/etc/udev", "/etc/udev/rules.d", "/home", "/lib", "/lib64", "/media",
    "/mnt", "/opt", "/opt/cni", "/opt/cni/bin", "/root", "/run", "/sbin", "/srv", "/usr", "/usr/bin",
    "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/usr/local/sbin", "/usr/sbin", "/usr/share", "/var",
    "/var/cache", "/var/lib", "/var/lib/containerd", "/var/lib/docker", "/var/lib/kubelet", "/var/log",
    "/var/log/containers", "/var/log/pods", "/var/run", "/var/spool",
    "/tmp", "/var/tmp",  # noqa: S108 (nothing is put there)
))  # fmt: skip
"""Directories on every machine; no file can have their paths."""
OWN_FOLDERS = tuple(own_folder(name) for name in (*COMPONENTS.values(), dnscontroller.NAME))
ELSEWHERE = f"choose another path, such as {ASSETS}/NAME, the default"


@dataclass(frozen=True, slots=True, kw_only=True)
class OurPlaces:
    """The paths that protokube writes on the machines of one cluster."""

    files: frozenset[str]
    manifests: Mapping[str, str]
    """By file name: `NAMESPACE/NAME` of its pod."""
    data: tuple[str, ...]
    """Data directories of etcd."""
    keys: frozenset[str]
    """File names of ours in the key directories; users of the original keep their own files there too."""

    @property
    def pods(self) -> frozenset[str]:
        return frozenset(self.manifests.values())

    @property
    def folders(self) -> frozenset[str]:
        """Directories, because files of ours are below them."""
        inside = [*self.files, *self.data, *FOLDERS, f"{ASSETS}/x", f"{MANIFESTS}/x"]
        inside += [f"{each}/x" for each in OWN_FOLDERS]
        return frozenset(str(each) for path in inside for each in PurePosixPath(path).parents)


def our_places(cluster: Tree, rendered: Mapping[str, Tree]) -> OurPlaces:
    """The paths for a complete configuration and its rendered files."""
    found = {POD_NETWORK, *OF_NODEUP}
    if cluster["topology"]["dns"]["type"] == "None":  # the agents write the names of masters there
        found.add(HOSTS)
    for parts in rendered.values():
        for field, form in parts.items():
            members = [each for etcd in form.values() for each in etcd.values()] if field == "etcd" else [form]
            found |= {path for each in members for path in each.get("files", {})}
    running = [field for field in rendered[""] if field in COMPONENTS]
    running += ["dnsController"] if dnscontroller.runs(cluster) else []
    kubeconfigs: list[Any] = [cluster[field].get("kubeconfig") for field in running]
    kubeconfigs += [cluster[field].get("kubeconfigPath") for field in ("kubelet", "masterKubelet") if field in cluster]
    names = [COMPONENTS.get(field, dnscontroller.NAME) for field in running]
    manifests = {f"{name}.manifest": f"kube-system/{name}" for name in names}
    etcd_clusters = cluster.get("etcdClusters") or {}
    for key in etcd_clusters:
        end = "" if key == "main" else f"-{key}"
        manifests[f"etcd{end}.manifest"] = f"kube-system/etcd-server{end}"
    return OurPlaces(
        files=frozenset(found | {path for path in kubeconfigs if path}),
        manifests=manifests,
        keys=frozenset(_keys(cluster["pki"])),
        data=tuple(each["dataDir"] for each in etcd_clusters.values()),
    )


def _keys(pki: Tree) -> Iterator[str]:
    """File names of our keys and certificates."""
    for name in ("ca", "kubelet", "kubelet-server", *pki["authorities"], *pki["certificates"], *pki["keyPairs"]):
        yield from (f"{name}.{kind}" for kind in ("crt", "key", "pub"))


def why_not(path: str, ours: OurPlaces) -> tuple[str, str] | None:
    """Why a user's file cannot be there, and a hint; None if it can."""
    if not path.startswith("/"):
        return "is not an absolute path", "begin it with a slash"
    if not path.isprintable():
        return "has unprintable characters", ""
    plain = "/" + posixpath.normpath(path).lstrip("/")
    if path in WELL_KNOWN | ours.folders or path in KERNEL or path.endswith("/"):
        return "is a directory", "add the name of the file"
    if path != plain:
        return "is not a normalized path", f"did you mean {plain}?"
    if root := _inside(path, KERNEL):
        return f"is in {root}, where no file can be kept", ELSEWHERE
    folder, _, name = path.rpartition("/")
    if path in ours.files or (folder in (DIRECTORY, *OWN_FOLDERS) and name in ours.keys):
        return "is a file that protokube writes itself", ELSEWHERE
    if root := _inside(path, FOLDERS):
        return f"is in {root}, which is protokube's own", ELSEWHERE
    if path.startswith(VOLUMES) or _inside(path, ours.data):
        return "is where etcd keeps its data", ELSEWHERE
    copied = (each for each in ours.manifests if name.startswith((each, f"#{each}")))
    if folder == MANIFESTS and (manifest := next(copied, None)):
        reason = "is a manifest that protokube writes itself"
        if name != manifest:  # the agent sets copies aside, or the kubelet would run them too
            reason = f"has the name of a copy of {manifest}, and would be set aside"
        return reason, "give it another name; other fields of the spec configure that pod"
    return None


def _inside(path: str, folders: tuple[str, ...]) -> str:
    return next((each for each in folders if path == each or path.startswith(f"{each}/")), "")
