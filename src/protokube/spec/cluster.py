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
from protokube.spec.fields import at_least, one_of, said
from protokube.spec.machines import Assets, ClusterDNS, Containerd, DNSController, FileAsset, Hook
from protokube.spec.network import API, EgressProxy, Networking, Subnet, Topology
from protokube.spec.pki import PKI

MOST_MASTERS = 9
"""More than etcd is ever given members."""
CLOUDS = ("aws", "gce", "local", "metal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One Kubernetes cluster."""

    cloud: str = said("Who owns the machines and disks", check=one_of(*CLOUDS))
    zones: list[str] = said("Where machines stand")
    masters: int = said("How many machines run the control plane", check=at_least(1, MOST_MASTERS))
    nodes: int = said("How many machines run pods", check=at_least(0, 10_000))
    kubernetes_version: str = said("The version of Kubernetes, such as 1.36.4")

    master_public_name: str = said("The name of the API for people")
    master_internal_name: str = said("The name of the API for the cluster's own machines")
    dns_zone: str | None = said("The zone our records go to, by name or by the provider's id")
    additional_sans: list[str] = said("More names the API server's certificate is good for")
    cluster_dns_domain: str = said("Where services have their names", name="clusterDNSDomain")

    region: str | None = said("The cloud's region")
    project: str | None = said("GCE: the project")
    network_cidr: str | None = said("The machines' addresses", name="networkCIDR")
    additional_network_cidrs: list[str] | None = said("More of them", name="additionalNetworkCIDRs")
    network_id: str | None = said("The network that exists already", name="networkID")
    non_masquerade_cidr: str = said("Addresses inside the cluster: pods and services", name="nonMasqueradeCIDR")
    pod_cidr: str = said("Pods' addresses", name="podCIDR")
    service_cluster_ip_range: str = said("Services' addresses", name="serviceClusterIPRange")
    subnets: dict[str, Subnet] = said("The network's parts", keyed=True)
    topology: Topology = said()
    networking: Networking = said()
    api: API = said()
    ssh_access: list[str] = said("Who may reach SSH")
    kubernetes_api_access: list[str] = said("Who may reach the API")
    node_port_access: list[str] = said("Who may reach node ports")
    ssh_key_name: str | None = said("AWS: the key pair that exists already")
    ssh_public_keys: list[str] | None = said("Keys that may log in to machines")
    egress_proxy: EgressProxy | None = said()
    disable_subnet_tags: bool | None = said("AWS: leave the tags of subnets alone")

    config_base: str | None = said("Where this configuration lies")
    key_store: str = said("Where keys lie")
    secret_store: str = said("Where secrets lie")

    etcd_clusters: dict[str, EtcdCluster] = said("The stores under the API", keyed=True)
    kube_api_server: KubeAPIServer = said(name="kubeAPIServer")
    kube_controller_manager: KubeControllerManager = said()
    kube_scheduler: KubeScheduler = said()
    kube_proxy: KubeProxy = said()
    kubelet: Kubelet = said("What every kubelet is told")
    master_kubelet: Kubelet = said("What kubelets of masters are told on top")
    cloud_controller_manager: dict[str, Any] | None = said("Kept as given for the cloud's own controller manager")
    cloud_config: dict[str, Any] | None = said("Kept as given for the cloud's own file")

    container_runtime: str = said("What runs containers; docker up to 1.23", check=one_of("containerd", "docker"))
    containerd: Containerd | None = said()
    docker: dict[str, Any] | None = said("Kept as given for the Docker daemon")
    cluster_dns: ClusterDNS = said("The DNS server of the pods", name="clusterDNS")
    dns_controller: DNSController = said()
    assets: Assets | None = said()
    addons: list[dict[str, Any]] | None = said("Manifests applied once the API answers, in this order")

    authorization: str = said("Who decides what may be done", check=one_of("RBAC", "AlwaysAllow"))
    encryption_config: bool | None = said("Whether secrets are encrypted in etcd, by a key in the store")
    service_account_issuer_discovery: dict[str, Any] | None = said("Where keys of service accounts are published")
    iam: dict[str, Any] | None = said("AWS: how roles are made")
    additional_policies: dict[str, str] | None = said("AWS: more rights by role")
    external_policies: dict[str, list[str]] | None = said("AWS: policies that exist already, by role")
    cloud_labels: dict[str, str] | None = said("Labels the cloud shows on everything")
    update_policy: str | None = said("Whether the OS updates itself", check=one_of("automatic", "external"))
    rolling_update: dict[str, Any] | None = said("How many machines are replaced at once")
    isolate_masters: bool | None = said("Whether masters and nodes are kept apart by the cloud's firewall")
    use_host_certificates: bool | None = said("Whether pods of ours trust what the machine trusts")
    sysctl_parameters: list[str] | None = said("Kernel settings")
    ntp: dict[str, Any] | None = said("Whether we keep the clock")
    packages: list[str] | None = said("More packages of the distribution")
    file_assets: dict[str, FileAsset] | None = said("Files of the user's", keyed=True)
    hooks: list[Hook] | None = said("Units of the user's")
    pki: PKI = said("Names of keys and certificates")
