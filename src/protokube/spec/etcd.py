"""etcd clusters and the disks of their members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import at_least, duration, lasting, quantity, spec_field


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMember:
    """One member of the fixed set, and its disk, which moves it from machine to machine."""

    instance_group: str = spec_field("The group of masters that may attach its disk")
    zone: str = spec_field("The zone of its disk")
    volume_type: str | None = spec_field("The cloud's disk type")
    volume_size: int = spec_field("Size of its disk in gigabytes", check=at_least(1, 65536))
    volume_iops: int | None = spec_field("I/O operations per second, for disk types that need them", check=at_least(1))
    volume_throughput: int | None = spec_field("Megabytes per second, for disk types that need them", check=at_least(1))
    encrypted_volume: bool = spec_field("Whether the cloud encrypts the disk")
    kms_key_id: str | None = spec_field("The key that encrypts the disk")


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdBackups:
    """Snapshots of etcd in the state store."""

    backup_store: str = spec_field("The directory for snapshots in the state store")
    interval: str = spec_field("Time between two snapshots", check=duration)
    retention_days: int = spec_field("Days for which a snapshot is kept", check=at_least(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdMaintenance:
    """What the agents may do without a person if etcd is full, or if a member was removed by hand."""

    compact: bool = spec_field(
        "Whether they may delete old revisions, those that were replaced 10 minutes ago or earlier"
    )
    rejoin_removed: bool = spec_field("Whether a member that was removed from etcd's list by hand rejoins, once a day")
    rejoin_removed_after: str = spec_field(
        "How long it has to be missing from the list first", check=lasting("1s", "24h")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdCluster:
    """One etcd cluster: `main` holds everything; `events` holds only events, which may be lost."""

    version: str = spec_field("The version of etcd")
    image: str = spec_field("The image it runs from")
    members: dict[str, EtcdMember] = spec_field("The fixed set of members", keyed=True)
    client_port: int = spec_field("The port for clients, such as the API server", check=at_least(1, 65535))
    peer_port: int = spec_field("The port for traffic between members", check=at_least(1, 65535))
    metrics_port: int = spec_field(
        "The port for health and metrics without a certificate, on 127.0.0.1 only", check=at_least(1, 65535)
    )
    token: str = spec_field("Keeps two clusters apart if their members meet by mistake; each creation adds its own id")
    data_dir: str = spec_field("The data directory inside the pod")
    heartbeat_interval: str | None = spec_field("How often the leader sends heartbeats", check=duration)
    leader_election_timeout: str | None = spec_field(
        "Time without heartbeats before a new leader is elected", check=duration
    )
    quota_backend_bytes: int = spec_field("The database size at which etcd stops accepting writes", check=at_least(0))
    cpu_request: str = spec_field("CPU request of each member", check=quantity)
    memory_request: str = spec_field("Memory request of each member", check=quantity)
    backups: EtcdBackups = spec_field()
    replace_lost_volumes: bool = spec_field("Whether the agents replace a disk that the cloud lost without asking")
    maintenance: EtcdMaintenance = spec_field()
    log_level: str | None = spec_field("The log level of etcd")
    env: list[dict[str, Any]] | None = spec_field("Additional environment variables for etcd")
    extra_flags: dict[str, Any] | None = spec_field("Any other flag of this etcd version, without the leading dashes")
