"""Kind InstanceGroup: machines that are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.components.kubelet import Kubelet
from protokube.spec.fields import at_least, one_of, spec_field
from protokube.spec.machines import ROLES, Containerd, FileAsset, Hook


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceGroup:
    """Machines that are alike; one that dies is replaced by another."""

    role: str = spec_field("What its machines are for", check=one_of(*ROLES))
    min_size: int = spec_field("Machines that always run", check=at_least(0, 10_000))
    max_size: int = spec_field("Machines that may run", check=at_least(0, 10_000))
    machine_type: str | None = spec_field("The cloud's name for the kind of machine")
    image: str | None = spec_field("What they boot from")
    zones: list[str] = spec_field("Where they stand")
    subnets: list[str] = spec_field("The subnets they stand in")
    node_labels: dict[str, str] = spec_field("Labels their nodes register with")
    taints: list[str] = spec_field("Taints their nodes register with")
    cloud_labels: dict[str, str] | None = spec_field("Labels the cloud shows on them")
    root_volume_size: int | None = spec_field("In gigabytes", check=at_least(1, 65536))
    root_volume_type: str | None = spec_field("The cloud's name for the kind of disk")
    root_volume_iops: int | None = spec_field("Operations a second of the root disk", check=at_least(1))
    root_volume_throughput: int | None = spec_field("Megabytes a second of the root disk", check=at_least(1))
    root_volume_optimization: bool | None = spec_field("AWS: whether the way to its disks is its own")
    root_volume_encryption: bool | None = spec_field("Whether the cloud encrypts the root disk")
    root_volume_encryption_key: str | None = spec_field("With which key")
    root_volume_delete_on_termination: bool | None = spec_field("Whether the root disk goes with its machine")
    volumes: list[dict[str, Any]] | None = spec_field("More disks, empty at first")
    volume_mounts: list[dict[str, Any]] | None = spec_field("Where they are mounted")
    associate_public_ip: bool | None = spec_field("Whether machines get addresses the world can reach")
    additional_security_groups: list[str] | None = spec_field("AWS: groups they also belong to")
    security_group_override: str | None = spec_field("AWS: the group they have instead of ours")
    additional_user_data: list[dict[str, Any]] | None = spec_field("More cloud-init parts")
    external_load_balancers: list[dict[str, Any]] | None = spec_field("Balancers of the user's they register with")
    suspend_processes: list[str] | None = spec_field("AWS: what the scaling group leaves undone")
    detailed_instance_monitoring: bool | None = spec_field("AWS: measurements every minute")
    iam: dict[str, Any] | None = spec_field("AWS: the profile they have instead of ours")
    instance_metadata: dict[str, Any] | None = spec_field("AWS: how the metadata service answers")
    instance_protection: bool | None = spec_field("AWS: whether scaling in spares them")
    instance_interruption_behavior: str | None = spec_field("AWS: what becomes of a spot machine that is taken back")
    max_price: str | None = spec_field("AWS: the most a spot machine may cost")
    mixed_instances_policy: dict[str, Any] | None = spec_field("AWS: several machine types in one group")
    spot_duration_in_minutes: int | None = spec_field("AWS: how long a spot machine is kept")
    cpu_credits: str | None = spec_field("AWS: whether burstable machines may go into debt")
    capacity_rebalance: bool | None = spec_field("AWS: whether spot machines at risk are replaced early")
    max_instance_lifetime: str | None = spec_field("AWS: how old a machine may become")
    warm_pool: dict[str, Any] | None = spec_field("AWS: machines kept ready beside it")
    tenancy: str | None = spec_field("AWS: whether the hardware is shared")
    guest_accelerators: list[dict[str, Any]] | None = spec_field("GCE")
    gcp_provisioning_model: str | None = spec_field("GCE")
    autoscale: bool | None = spec_field("Whether an autoscaler may change the size")
    autoscale_priority: int | None = spec_field("Which group an autoscaler grows first")
    rolling_update: dict[str, Any] | None = spec_field("How many machines are replaced at once")
    update_policy: str | None = spec_field("Whether the OS updates itself", check=one_of("automatic", "external"))
    compress_user_data: bool | None = spec_field("Whether the launch data is compressed")
    sysctl_parameters: list[str] | None = spec_field("Kernel settings")
    packages: list[str] | None = spec_field("More packages of the distribution")
    file_assets: dict[str, FileAsset] | None = spec_field("Files of the user's", keyed=True)
    hooks: list[Hook] | None = spec_field("Units of the user's")
    containerd: Containerd | None = spec_field()
    kubelet: Kubelet = spec_field("What its kubelets are told, on top of the cluster's")
