"""etcd clusters and the disks their members live on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import at_least, duration, lasting, quantity, said


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMember:
    """One name of the fixed set, and the disk that carries it from machine to machine."""

    instance_group: str = said("The group of masters that may hold its disk")
    zone: str = said("Where its disk lies")
    volume_type: str | None = said("The cloud's name for the kind of disk")
    volume_size: int = said("In gigabytes", check=at_least(1, 65536))
    volume_iops: int | None = said("Operations a second, where the kind of disk asks for them", check=at_least(1))
    volume_throughput: int | None = said("Megabytes a second, likewise", check=at_least(1))
    encrypted_volume: bool = said("Whether the cloud encrypts the disk")
    kms_key_id: str | None = said("With which key")


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdBackups:
    """Where snapshots go."""

    backup_store: str = said("A directory of the state store")
    interval: str = said("How often", check=duration)
    retention_days: int = said("How long each is kept", check=at_least(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMaintenance:
    """What the agents may do by themselves to an etcd that is full, or that lost a member to a person's hand."""

    compact: bool = said("Whether they may delete old revisions, those that were replaced 10 minutes ago or earlier")
    rejoin_removed: bool = said("Whether a member that was removed from etcd's list by hand rejoins, once a day")
    rejoin_removed_after: str = said("How long the list has to lack it first", check=lasting("1s", "24h"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdCluster:
    """One etcd: `main` holds everything, `events` only the events, which may be lost."""

    version: str = said("etcd's own version")
    image: str = said("The image it runs from")
    members: dict[str, EtcdMember] = said("The fixed set of names", keyed=True)
    client_port: int = said("Where the API server asks", check=at_least(1, 65535))
    peer_port: int = said("Where members talk to each other", check=at_least(1, 65535))
    metrics_port: int = said("On 127.0.0.1 only: health and metrics without a certificate", check=at_least(1, 65535))
    token: str = said("Keeps two clusters apart that meet by mistake; a creation adds its own id")
    data_dir: str = said("Inside the pod")
    heartbeat_interval: str | None = said("How often the leader is heard", check=duration)
    leader_election_timeout: str | None = said("After how much silence another is elected", check=duration)
    quota_backend_bytes: int = said("The size at which etcd stops taking writes", check=at_least(0))
    cpu_request: str = said("CPU each member is sure of", check=quantity)
    memory_request: str = said("Memory each member is sure of", check=quantity)
    backups: EtcdBackups = said()
    replace_lost_volumes: bool = said("Whether a disk that the cloud lost is made anew without asking")
    maintenance: EtcdMaintenance = said()
    log_level: str | None = said("How much it logs")
    env: list[dict[str, Any]] | None = said("More environment for etcd")
    extra_flags: dict[str, Any] | None = said("Any other setting of this etcd version, without the dashes")
