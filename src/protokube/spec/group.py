"""Kind InstanceGroup: machines that are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.components.kubelet import Kubelet
from protokube.spec.fields import at_least, one_of, said
from protokube.spec.machines import ROLES, Containerd, FileAsset, Hook


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceGroup:
    """Machines that are alike; one that dies is replaced by another."""

    role: str = said("What its machines are for", check=one_of(*ROLES))
    min_size: int = said("Machines that always run", check=at_least(0, 10_000))
    max_size: int = said("Machines that may run", check=at_least(0, 10_000))
    machine_type: str | None = said("The cloud's name for the kind of machine")
    image: str | None = said("What they boot from")
    zones: list[str] = said("Where they stand")
    subnets: list[str] = said("The subnets they stand in")
    node_labels: dict[str, str] = said("Labels their nodes register with")
    taints: list[str] = said("Taints their nodes register with")
    cloud_labels: dict[str, str] | None = said("Labels the cloud shows on them")
    root_volume_size: int | None = said("In gigabytes", check=at_least(1, 65536))
    root_volume_type: str | None = said("The cloud's name for the kind of disk")
    root_volume_iops: int | None = said("Operations a second of the root disk", check=at_least(1))
    root_volume_throughput: int | None = said("Megabytes a second of the root disk", check=at_least(1))
    root_volume_optimization: bool | None = said("AWS: whether the way to its disks is its own")
    root_volume_encryption: bool | None = said("Whether the cloud encrypts the root disk")
    root_volume_encryption_key: str | None = said("With which key")
    root_volume_delete_on_termination: bool | None = said("Whether the root disk goes with its machine")
    volumes: list[dict[str, Any]] | None = said("More disks, empty at first")
    volume_mounts: list[dict[str, Any]] | None = said("Where they are mounted")
    associate_public_ip: bool | None = said("Whether machines get addresses the world can reach")
    additional_security_groups: list[str] | None = said("AWS: groups they also belong to")
    security_group_override: str | None = said("AWS: the group they have instead of ours")
    additional_user_data: list[dict[str, Any]] | None = said("More cloud-init parts")
    external_load_balancers: list[dict[str, Any]] | None = said("Balancers of the user's they register with")
    suspend_processes: list[str] | None = said("AWS: what the scaling group leaves undone")
    detailed_instance_monitoring: bool | None = said("AWS: measurements every minute")
    iam: dict[str, Any] | None = said("AWS: the profile they have instead of ours")
    instance_metadata: dict[str, Any] | None = said("AWS: how the metadata service answers")
    instance_protection: bool | None = said("AWS: whether scaling in spares them")
    instance_interruption_behavior: str | None = said("AWS: what becomes of a spot machine that is taken back")
    max_price: str | None = said("AWS: the most a spot machine may cost")
    mixed_instances_policy: dict[str, Any] | None = said("AWS: several machine types in one group")
    spot_duration_in_minutes: int | None = said("AWS: how long a spot machine is kept")
    cpu_credits: str | None = said("AWS: whether burstable machines may go into debt")
    capacity_rebalance: bool | None = said("AWS: whether spot machines at risk are replaced early")
    max_instance_lifetime: str | None = said("AWS: how old a machine may become")
    warm_pool: dict[str, Any] | None = said("AWS: machines kept ready beside it")
    tenancy: str | None = said("AWS: whether the hardware is shared")
    guest_accelerators: list[dict[str, Any]] | None = said("GCE")
    gcp_provisioning_model: str | None = said("GCE")
    autoscale: bool | None = said("Whether an autoscaler may change the size")
    autoscale_priority: int | None = said("Which group an autoscaler grows first")
    rolling_update: dict[str, Any] | None = said("How many machines are replaced at once")
    update_policy: str | None = said("Whether the OS updates itself", check=one_of("automatic", "external"))
    compress_user_data: bool | None = said("Whether the launch data is compressed")
    sysctl_parameters: list[str] | None = said("Kernel settings")
    packages: list[str] | None = said("More packages of the distribution")
    file_assets: dict[str, FileAsset] | None = said("Files of the user's", keyed=True)
    hooks: list[Hook] | None = said("Units of the user's")
    containerd: Containerd | None = said()
    kubelet: Kubelet = said("What its kubelets are told, on top of the cluster's")
