"""etcd clusters and the disks their members live on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import at_least, duration, lasting, quantity, spec_field


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMember:
    """One name of the fixed set, and the disk that carries it from machine to machine."""

    instance_group: str = spec_field("The group of masters that may hold its disk")
    zone: str = spec_field("Where its disk lies")
    volume_type: str | None = spec_field("The cloud's name for the kind of disk")
    volume_size: int = spec_field("In gigabytes", check=at_least(1, 65536))
    volume_iops: int | None = spec_field("Operations a second, where the kind of disk asks for them", check=at_least(1))
    volume_throughput: int | None = spec_field("Megabytes a second, likewise", check=at_least(1))
    encrypted_volume: bool = spec_field("Whether the cloud encrypts the disk")
    kms_key_id: str | None = spec_field("With which key")


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdBackups:
    """Where snapshots go."""

    backup_store: str = spec_field("A directory of the state store")
    interval: str = spec_field("How often", check=duration)
    retention_days: int = spec_field("How long each is kept", check=at_least(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMaintenance:
    """What the agents may do by themselves to an etcd that is full, or that lost a member to a person's hand."""

    compact: bool = spec_field(
        "Whether they may delete old revisions, those that were replaced 10 minutes ago or earlier"
    )
    rejoin_removed: bool = spec_field("Whether a member that was removed from etcd's list by hand rejoins, once a day")
    rejoin_removed_after: str = spec_field("How long the list has to lack it first", check=lasting("1s", "24h"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdCluster:
    """One etcd: `main` holds everything, `events` only the events, which may be lost."""

    version: str = spec_field("etcd's own version")
    image: str = spec_field("The image it runs from")
    members: dict[str, EtcdMember] = spec_field("The fixed set of names", keyed=True)
    client_port: int = spec_field("Where the API server asks", check=at_least(1, 65535))
    peer_port: int = spec_field("Where members talk to each other", check=at_least(1, 65535))
    metrics_port: int = spec_field(
        "On 127.0.0.1 only: health and metrics without a certificate", check=at_least(1, 65535)
    )
    token: str = spec_field("Keeps two clusters apart that meet by mistake; a creation adds its own id")
    data_dir: str = spec_field("Inside the pod")
    heartbeat_interval: str | None = spec_field("How often the leader is heard", check=duration)
    leader_election_timeout: str | None = spec_field("After how much silence another is elected", check=duration)
    quota_backend_bytes: int = spec_field("The size at which etcd stops taking writes", check=at_least(0))
    cpu_request: str = spec_field("CPU each member is sure of", check=quantity)
    memory_request: str = spec_field("Memory each member is sure of", check=quantity)
    backups: EtcdBackups = spec_field()
    replace_lost_volumes: bool = spec_field("Whether a disk that the cloud lost is made anew without asking")
    maintenance: EtcdMaintenance = spec_field()
    log_level: str | None = spec_field("How much it logs")
    env: list[dict[str, Any]] | None = spec_field("More environment for etcd")
    extra_flags: dict[str, Any] | None = spec_field("Any other setting of this etcd version, without the dashes")
