"""Kind Cluster: every field of its spec.

A field typed `X | None` may stay unset even in a complete configuration; `config.complete` sets all others that the
user leaves out. The user's spec is a part of these fields; the complete configuration has all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.components.apiserver import KubeAPIServer
from protokube.spec.components.controller_manager import KubeControllerManager
from protokube.spec.components.kubelet import Kubelet
from protokube.spec.components.proxy import KubeProxy
from protokube.spec.components.scheduler import KubeScheduler
from protokube.spec.etcd import EtcdCluster
from protokube.spec.fields import at_least, one_of, spec_field
from protokube.spec.machines import Assets, ClusterDNS, Containerd, DNSController, FileAsset, Hook
from protokube.spec.network import API, EgressProxy, Networking, Subnet, Topology
from protokube.spec.pki import PKI

MOST_MASTERS = 9
"""Upper bound; etcd clusters have fewer members."""
CLOUDS = ("aws", "gce", "local", "metal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One Kubernetes cluster."""

    cloud: str = spec_field("The cloud that provides machines and disks", check=one_of(*CLOUDS))
    zones: list[str] = spec_field("The zones in which machines run")
    masters: int = spec_field("How many machines run the control plane", check=at_least(1, MOST_MASTERS))
    nodes: int = spec_field("How many machines run pods", check=at_least(0, 10_000))
    kubernetes_version: str = spec_field("The version of Kubernetes, such as 1.36.4")

    master_public_name: str = spec_field("The DNS name of the API for users")
    master_internal_name: str = spec_field("The DNS name of the API for the cluster's own machines")
    dns_zone: str | None = spec_field("The DNS zone for the cluster's records, by name or by the provider's id")
    additional_sans: list[str] = spec_field("Additional names in the API server's certificate")
    cluster_dns_domain: str = spec_field("The DNS domain of services", name="clusterDNSDomain")

    region: str | None = spec_field("The cloud's region")
    project: str | None = spec_field("GCE: the project")
    network_cidr: str | None = spec_field("The address range of the machines", name="networkCIDR")
    additional_network_cidrs: list[str] | None = spec_field(
        "Additional address ranges of the machines", name="additionalNetworkCIDRs"
    )
    network_id: str | None = spec_field("An existing network to use", name="networkID")
    non_masquerade_cidr: str = spec_field("The address range of pods and services", name="nonMasqueradeCIDR")
    pod_cidr: str = spec_field("The address range of pods", name="podCIDR")
    service_cluster_ip_range: str = spec_field("The address range of services", name="serviceClusterIPRange")
    subnets: dict[str, Subnet] = spec_field("The subnets of the network", keyed=True)
    topology: Topology = spec_field()
    networking: Networking = spec_field()
    api: API = spec_field()
    ssh_access: list[str] = spec_field("Address ranges that may reach SSH")
    kubernetes_api_access: list[str] = spec_field("Address ranges that may reach the API")
    node_port_access: list[str] = spec_field("Address ranges that may reach node ports")
    ssh_key_name: str | None = spec_field("AWS: an existing key pair to use")
    ssh_public_keys: list[str] | None = spec_field("SSH public keys that may log in to machines")
    egress_proxy: EgressProxy | None = spec_field()
    disable_subnet_tags: bool | None = spec_field("AWS: do not change the tags of subnets")

    config_base: str | None = spec_field("The directory of this configuration in the state store")
    key_store: str = spec_field("The directory of keys and certificates in the state store")
    secret_store: str = spec_field("The directory of secrets in the state store")

    etcd_clusters: dict[str, EtcdCluster] = spec_field("The etcd clusters that the API server uses", keyed=True)
    kube_api_server: KubeAPIServer = spec_field(name="kubeAPIServer")
    kube_controller_manager: KubeControllerManager = spec_field()
    kube_scheduler: KubeScheduler = spec_field()
    kube_proxy: KubeProxy = spec_field()
    kubelet: Kubelet = spec_field("Settings of every kubelet")
    master_kubelet: Kubelet = spec_field("Settings of the kubelets of masters; they override `kubelet`")
    cloud_controller_manager: dict[str, Any] | None = spec_field(
        "Passed through unchanged to the cloud controller manager"
    )
    cloud_config: dict[str, Any] | None = spec_field(
        "Passed through unchanged to the cloud provider's configuration file"
    )

    container_runtime: str = spec_field(
        "The container runtime; docker up to Kubernetes 1.23", check=one_of("containerd", "docker")
    )
    containerd: Containerd | None = spec_field()
    docker: dict[str, Any] | None = spec_field("Passed through unchanged to the Docker daemon")
    cluster_dns: ClusterDNS = spec_field("The DNS server for pods", name="clusterDNS")
    dns_controller: DNSController = spec_field()
    assets: Assets | None = spec_field()
    addons: list[dict[str, Any]] | None = spec_field("Manifests applied once the API answers, in this order")

    authorization: str = spec_field("How API requests are authorized", check=one_of("RBAC", "AlwaysAllow"))
    encryption_config: bool | None = spec_field(
        "Whether secrets are encrypted in etcd, with a key from the state store"
    )
    service_account_issuer_discovery: dict[str, Any] | None = spec_field(
        "Where the public keys of service accounts are published"
    )
    iam: dict[str, Any] | None = spec_field("AWS: how IAM roles are created")
    additional_policies: dict[str, str] | None = spec_field("AWS: additional IAM policies by role")
    external_policies: dict[str, list[str]] | None = spec_field("AWS: existing IAM policies to attach, by role")
    cloud_labels: dict[str, str] | None = spec_field("Labels of all cloud resources of the cluster")
    update_policy: str | None = spec_field("Whether the OS updates itself", check=one_of("automatic", "external"))
    rolling_update: dict[str, Any] | None = spec_field("How many machines are replaced at once")
    isolate_masters: bool | None = spec_field("Whether the cloud's firewall separates masters from nodes")
    use_host_certificates: bool | None = spec_field(
        "Whether protokube's pods trust the certificate authorities of the machine"
    )
    sysctl_parameters: list[str] | None = spec_field("sysctl settings")
    ntp: dict[str, Any] | None = spec_field("Whether protokube manages time synchronization")
    packages: list[str] | None = spec_field("Additional packages of the distribution")
    file_assets: dict[str, FileAsset] | None = spec_field("Additional files on machines", keyed=True)
    hooks: list[Hook] | None = spec_field("Additional systemd units on machines")
    pki: PKI = spec_field("Keys and certificates of the cluster")
