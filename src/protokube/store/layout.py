"""Paths in a store: the layout of kops, so that existing stores keep working.

Everything of a cluster is below its name. A name from a user is one part of a path, never
several: "../other" as an instance group is refused here, before it reaches a backend.
"""

from __future__ import annotations

from collections.abc import Sequence

from protokube.errors import Refused
from protokube.store import Store
from protokube.store.paths import check_path

GENERATION = "generation.json"


def config(cluster: str) -> str:
    """The spec as the user wrote it."""
    return _below(cluster, "config")


def complete_spec(cluster: str) -> str:
    """The complete spec of the cluster, with all defaults; machines read this."""
    return _below(cluster, "cluster.spec")


def instance_group(cluster: str, name: str) -> str:
    return _below(cluster, "instancegroup", name)


def instance_groups(cluster: str) -> str:
    """The folder of all groups, to list."""
    return _below(cluster, "instancegroup")


def certificate(cluster: str, name: str, serial: str) -> str:
    return _below(cluster, "pki", "issued", name, f"{serial}.crt")


def private_key(cluster: str, name: str, serial: str) -> str:
    return _below(cluster, "pki", "private", name, f"{serial}.key")


def keyset(cluster: str, kind: str, name: str) -> str:
    """The keyset of one name: which certificate ("issued") or key ("private") is in use."""
    return _below(cluster, "pki", kind, name, "keyset.yaml")


def ssh_public_key(cluster: str, name: str, fingerprint: str) -> str:
    return _below(cluster, "pki", "ssh", "public", name, fingerprint)


def secret(cluster: str, name: str) -> str:
    return _below(cluster, "secrets", name)


def addon_channel(cluster: str) -> str:
    """The list of addons a cluster starts with."""
    return _below(cluster, "addons", "bootstrap-channel.yaml")


def addon(cluster: str, name: str, *path: str) -> str:
    return _below(cluster, "addons", name, *path)


def etcd_manifest(cluster: str, etcd_cluster: str) -> str:
    """The static pod of "main" or "events"."""
    return _below(cluster, "manifests", "etcd", f"{etcd_cluster}.yaml")


def manifest(cluster: str, *path: str) -> str:
    return _below(cluster, "manifests", *path)


def etcd_backups(cluster: str, etcd_cluster: str) -> str:
    """The folder of one etcd cluster's backups, to list."""
    return _below(cluster, "backups", "etcd", etcd_cluster)


def etcd_backup(cluster: str, etcd_cluster: str, *path: str) -> str:
    return _below(cluster, "backups", "etcd", etcd_cluster, *path)


def etcd_control(cluster: str, etcd_cluster: str) -> str:
    """The desired state of an etcd cluster, as kops writes it."""
    return etcd_backup(cluster, etcd_cluster, "control", "etcd-cluster-spec")


def etcd_snapshot(cluster: str, key: str, name: str) -> str:
    """A snapshot of one etcd cluster's data."""
    return _below(cluster, "backups", "etcd", key, f"{name}.db")


def etcd_generation(cluster: str, etcd_cluster: str) -> str:
    """The generation record of one etcd cluster: whether its creation is still open, and who may found it."""
    return _below(cluster, "etcd", etcd_cluster, GENERATION)


def etcd_generations(cluster: str) -> str:
    """The folder in which each etcd cluster has a folder with its generation record, among others."""
    return _below(cluster, "etcd")


def etcd_raft_mark(cluster: str, etcd_cluster: str, generation: str, cluster_id: int, member_id: int) -> str:
    """The last recorded raft position of one member."""
    return _below(cluster, "etcd", etcd_cluster, "raft", f"{generation}-{cluster_id:x}-{member_id:x}")


def etcd_disk_faults(cluster: str, etcd_cluster: str, volume: str) -> str:
    """The recent file system errors of one volume."""
    return _below(cluster, "etcd", etcd_cluster, "diskfaults", f"{volume}.json")


def etcd_maintenance(cluster: str, etcd_cluster: str) -> str:
    """The record of the last maintenance of a full etcd cluster: when it began, and which member is next."""
    return _below(cluster, "etcd", etcd_cluster, "maintenance.json")


def revision(cluster: str, number: int) -> str:
    """One configuration that was put in force."""
    return _below(cluster, "revisions", f"{number:06}.json")


def revisions(cluster: str) -> str:
    """The folder of all revisions, to list."""
    return _below(cluster, "revisions")


def rollout(cluster: str) -> str:
    """The rollout record: which revision masters should run, and which master restarts now."""
    return _below(cluster, "rollout.json")


def agent(cluster: str, machine: str) -> str:
    """The status of one master, as its agent last published it."""
    return _below(cluster, "agents", f"{machine}.json")


def agents(cluster: str) -> str:
    """The folder of what the agents published, to list."""
    return _below(cluster, "agents")


def clusters(store: Store) -> Sequence[str]:
    """The names of the clusters in a store: every top-level folder with a config."""
    tops = (path.split("/") for path in store.list_paths())
    return tuple(sorted(parts[0] for parts in tops if len(parts) == 2 and parts[1] == "config"))


def _below(*parts: str) -> str:
    for part in parts:
        if "/" in part:
            raise Refused(f"{part!r} cannot be part of a path in a store: it holds a slash")
        check_path(part)
    return "/".join(parts)
