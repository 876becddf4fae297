"""Kind InstanceGroup: machines with the same settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.components.kubelet import Kubelet
from protokube.spec.fields import at_least, one_of, spec_field
from protokube.spec.machines import ROLES, Containerd, FileAsset, Hook


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceGroup:
    """Machines with the same settings; a failed machine is replaced."""

    role: str = spec_field("The role of its machines", check=one_of(*ROLES))
    min_size: int = spec_field("Minimum number of machines", check=at_least(0, 10_000))
    max_size: int = spec_field("Maximum number of machines", check=at_least(0, 10_000))
    machine_type: str | None = spec_field("The cloud's machine type")
    image: str | None = spec_field("The machine image they boot from")
    zones: list[str] = spec_field("The zones in which they run")
    subnets: list[str] = spec_field("The subnets in which they run")
    node_labels: dict[str, str] = spec_field("Labels their nodes register with")
    taints: list[str] = spec_field("Taints their nodes register with")
    cloud_labels: dict[str, str] | None = spec_field("Labels of the machines in the cloud")
    root_volume_size: int | None = spec_field("Size of the root disk in gigabytes", check=at_least(1, 65536))
    root_volume_type: str | None = spec_field("The cloud's type of the root disk")
    root_volume_iops: int | None = spec_field("I/O operations per second of the root disk", check=at_least(1))
    root_volume_throughput: int | None = spec_field(
        "Throughput of the root disk in megabytes per second", check=at_least(1)
    )
    root_volume_optimization: bool | None = spec_field("AWS: whether instances are EBS-optimized")
    root_volume_encryption: bool | None = spec_field("Whether the cloud encrypts the root disk")
    root_volume_encryption_key: str | None = spec_field("The key that encrypts the root disk")
    root_volume_delete_on_termination: bool | None = spec_field("Whether the root disk is deleted with its machine")
    volumes: list[dict[str, Any]] | None = spec_field("Additional disks, initially empty")
    volume_mounts: list[dict[str, Any]] | None = spec_field("Where the additional disks are mounted")
    associate_public_ip: bool | None = spec_field("Whether machines get public addresses")
    additional_security_groups: list[str] | None = spec_field("AWS: additional security groups")
    security_group_override: str | None = spec_field("AWS: the security group to use instead of protokube's")
    additional_user_data: list[dict[str, Any]] | None = spec_field("Additional cloud-init parts")
    external_load_balancers: list[dict[str, Any]] | None = spec_field("Existing load balancers that they register with")
    suspend_processes: list[str] | None = spec_field("AWS: suspended processes of the scaling group")
    detailed_instance_monitoring: bool | None = spec_field("AWS: one-minute metrics")
    iam: dict[str, Any] | None = spec_field("AWS: the instance profile to use instead of protokube's")
    instance_metadata: dict[str, Any] | None = spec_field("AWS: settings of the instance metadata service")
    instance_protection: bool | None = spec_field("AWS: whether they are protected from scale-in")
    instance_interruption_behavior: str | None = spec_field("AWS: what happens to a spot instance on interruption")
    max_price: str | None = spec_field("AWS: maximum price of a spot instance")
    mixed_instances_policy: dict[str, Any] | None = spec_field("AWS: several machine types in one group")
    spot_duration_in_minutes: int | None = spec_field("AWS: how long a spot instance is kept")
    cpu_credits: str | None = spec_field("AWS: CPU credit mode of burstable instances")
    capacity_rebalance: bool | None = spec_field("AWS: whether spot instances at risk are replaced early")
    max_instance_lifetime: str | None = spec_field("AWS: maximum age of an instance")
    warm_pool: dict[str, Any] | None = spec_field("AWS: pre-initialized instances kept in reserve")
    tenancy: str | None = spec_field("AWS: whether the hardware is shared")
    guest_accelerators: list[dict[str, Any]] | None = spec_field("GCE: accelerators of the machines")
    gcp_provisioning_model: str | None = spec_field("GCE: the provisioning model, such as SPOT")
    autoscale: bool | None = spec_field("Whether an autoscaler may change the size")
    autoscale_priority: int | None = spec_field("Which group an autoscaler grows first")
    rolling_update: dict[str, Any] | None = spec_field("How many machines are replaced at once")
    update_policy: str | None = spec_field("Whether the OS updates itself", check=one_of("automatic", "external"))
    compress_user_data: bool | None = spec_field("Whether the launch data is compressed")
    sysctl_parameters: list[str] | None = spec_field("sysctl settings")
    packages: list[str] | None = spec_field("Additional packages of the distribution")
    file_assets: dict[str, FileAsset] | None = spec_field("Additional files on machines", keyed=True)
    hooks: list[Hook] | None = spec_field("Additional systemd units on machines")
    containerd: Containerd | None = spec_field()
    kubelet: Kubelet = spec_field("Settings of its kubelets; they override the cluster's")
