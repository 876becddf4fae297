"""Kind Cluster: everything that can be said about one.

A field typed `X | None` may stay unsaid even in a complete configuration; any other is decided by `config.complete`
where the user is silent. What the user says is a part of this; the complete configuration is all of it.
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
"""More than etcd is ever given members."""
CLOUDS = ("aws", "gce", "local", "metal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One Kubernetes cluster."""

    cloud: str = spec_field("Who owns the machines and disks", check=one_of(*CLOUDS))
    zones: list[str] = spec_field("Where machines stand")
    masters: int = spec_field("How many machines run the control plane", check=at_least(1, MOST_MASTERS))
    nodes: int = spec_field("How many machines run pods", check=at_least(0, 10_000))
    kubernetes_version: str = spec_field("The version of Kubernetes, such as 1.36.4")

    master_public_name: str = spec_field("The name of the API for people")
    master_internal_name: str = spec_field("The name of the API for the cluster's own machines")
    dns_zone: str | None = spec_field("The zone our records go to, by name or by the provider's id")
    additional_sans: list[str] = spec_field("More names the API server's certificate is good for")
    cluster_dns_domain: str = spec_field("Where services have their names", name="clusterDNSDomain")

    region: str | None = spec_field("The cloud's region")
    project: str | None = spec_field("GCE: the project")
    network_cidr: str | None = spec_field("The machines' addresses", name="networkCIDR")
    additional_network_cidrs: list[str] | None = spec_field("More of them", name="additionalNetworkCIDRs")
    network_id: str | None = spec_field("The network that exists already", name="networkID")
    non_masquerade_cidr: str = spec_field("Addresses inside the cluster: pods and services", name="nonMasqueradeCIDR")
    pod_cidr: str = spec_field("Pods' addresses", name="podCIDR")
    service_cluster_ip_range: str = spec_field("Services' addresses", name="serviceClusterIPRange")
    subnets: dict[str, Subnet] = spec_field("The network's parts", keyed=True)
    topology: Topology = spec_field()
    networking: Networking = spec_field()
    api: API = spec_field()
    ssh_access: list[str] = spec_field("Who may reach SSH")
    kubernetes_api_access: list[str] = spec_field("Who may reach the API")
    node_port_access: list[str] = spec_field("Who may reach node ports")
    ssh_key_name: str | None = spec_field("AWS: the key pair that exists already")
    ssh_public_keys: list[str] | None = spec_field("Keys that may log in to machines")
    egress_proxy: EgressProxy | None = spec_field()
    disable_subnet_tags: bool | None = spec_field("AWS: leave the tags of subnets alone")

    config_base: str | None = spec_field("Where this configuration lies")
    key_store: str = spec_field("Where keys lie")
    secret_store: str = spec_field("Where secrets lie")

    etcd_clusters: dict[str, EtcdCluster] = spec_field("The stores under the API", keyed=True)
    kube_api_server: KubeAPIServer = spec_field(name="kubeAPIServer")
    kube_controller_manager: KubeControllerManager = spec_field()
    kube_scheduler: KubeScheduler = spec_field()
    kube_proxy: KubeProxy = spec_field()
    kubelet: Kubelet = spec_field("What every kubelet is told")
    master_kubelet: Kubelet = spec_field("What kubelets of masters are told on top")
    cloud_controller_manager: dict[str, Any] | None = spec_field("Kept as given for the cloud's own controller manager")
    cloud_config: dict[str, Any] | None = spec_field("Kept as given for the cloud's own file")

    container_runtime: str = spec_field("What runs containers; docker up to 1.23", check=one_of("containerd", "docker"))
    containerd: Containerd | None = spec_field()
    docker: dict[str, Any] | None = spec_field("Kept as given for the Docker daemon")
    cluster_dns: ClusterDNS = spec_field("The DNS server of the pods", name="clusterDNS")
    dns_controller: DNSController = spec_field()
    assets: Assets | None = spec_field()
    addons: list[dict[str, Any]] | None = spec_field("Manifests applied once the API answers, in this order")

    authorization: str = spec_field("Who decides what may be done", check=one_of("RBAC", "AlwaysAllow"))
    encryption_config: bool | None = spec_field("Whether secrets are encrypted in etcd, by a key in the store")
    service_account_issuer_discovery: dict[str, Any] | None = spec_field("Where keys of service accounts are published")
    iam: dict[str, Any] | None = spec_field("AWS: how roles are made")
    additional_policies: dict[str, str] | None = spec_field("AWS: more rights by role")
    external_policies: dict[str, list[str]] | None = spec_field("AWS: policies that exist already, by role")
    cloud_labels: dict[str, str] | None = spec_field("Labels the cloud shows on everything")
    update_policy: str | None = spec_field("Whether the OS updates itself", check=one_of("automatic", "external"))
    rolling_update: dict[str, Any] | None = spec_field("How many machines are replaced at once")
    isolate_masters: bool | None = spec_field("Whether masters and nodes are kept apart by the cloud's firewall")
    use_host_certificates: bool | None = spec_field("Whether pods of ours trust what the machine trusts")
    sysctl_parameters: list[str] | None = spec_field("Kernel settings")
    ntp: dict[str, Any] | None = spec_field("Whether we keep the clock")
    packages: list[str] | None = spec_field("More packages of the distribution")
    file_assets: dict[str, FileAsset] | None = spec_field("Files of the user's", keyed=True)
    hooks: list[Hook] | None = spec_field("Units of the user's")
    pki: PKI = spec_field("Names of keys and certificates")
