"""Settings of kube-controller-manager.

Flags only: its configuration file is not a stable API.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.components.leader import LeaderElection
from protokube.spec.fields import duration, quantity, setting, spec_field


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeControllerManager:
    """Settings of kube-controller-manager."""

    allocate_node_cid_rs: bool | None = setting(flag="allocate-node-cidrs", name="allocateNodeCIDRs")
    attach_detach_reconcile_sync_period: str | None = setting(
        flag="attach-detach-reconcile-sync-period", check=duration
    )
    authentication_kubeconfig: str | None = setting(flag="authentication-kubeconfig")
    authorization_always_allow_paths: list[str] | None = setting(flag="authorization-always-allow-paths")
    authorization_kubeconfig: str | None = setting(flag="authorization-kubeconfig")
    bind_address: str | None = setting(flag="bind-address")
    cidr_allocator_type: str | None = setting(flag="cidr-allocator-type")
    client_ca_file: str | None = setting(flag="client-ca-file", name="clientCAFile")
    cloud_provider: str | None = setting(flag="cloud-provider")
    cluster_cidr: str | None = setting(flag="cluster-cidr", name="clusterCIDR")
    cluster_name: str | None = setting(flag="cluster-name")
    cluster_signing_cert_file: str | None = setting(flag="cluster-signing-cert-file")
    cluster_signing_duration: str | None = setting(flag="cluster-signing-duration", check=duration)
    cluster_signing_key_file: str | None = setting(flag="cluster-signing-key-file")
    concurrent_deployment_syncs: int | None = setting(flag="concurrent-deployment-syncs")
    concurrent_endpoint_syncs: int | None = setting(flag="concurrent-endpoint-syncs")
    concurrent_horizontal_pod_autoscaler_syncs: int | None = setting(flag="concurrent-horizontal-pod-autoscaler-syncs")
    concurrent_job_syncs: int | None = setting(flag="concurrent-job-syncs")
    concurrent_namespace_syncs: int | None = setting(flag="concurrent-namespace-syncs")
    concurrent_rc_syncs: int | None = setting(flag="concurrent-rc-syncs")
    concurrent_replicaset_syncs: int | None = setting(flag="concurrent-replicaset-syncs")
    concurrent_resource_quota_syncs: int | None = setting(flag="concurrent-resource-quota-syncs")
    concurrent_service_syncs: int | None = setting(flag="concurrent-service-syncs")
    concurrent_serviceaccount_token_syncs: int | None = setting(flag="concurrent-serviceaccount-token-syncs")
    configure_cloud_routes: bool | None = setting(flag="configure-cloud-routes")
    controllers: list[str] | None = setting(flag="controllers")
    cpu_limit: str | None = spec_field("CPU limit of its pod", check=quantity)
    cpu_request: str | None = spec_field("CPU request of its pod", check=quantity)
    disable_attach_detach_reconcile_sync: bool | None = setting(flag="disable-attach-detach-reconcile-sync")
    enable_contention_profiling: bool | None = setting(flag="contention-profiling")
    enable_leader_migration: bool | None = setting(flag="enable-leader-migration")
    enable_profiling: bool | None = setting(flag="profiling")
    endpoint_slice_updates_batch_period: str | None = setting(flag="endpointslice-updates-batch-period", check=duration)
    endpoint_updates_batch_period: str | None = setting(flag="endpoint-updates-batch-period", check=duration)
    external_cloud_volume_plugin: str | None = setting(flag="external-cloud-volume-plugin")
    feature_gates: dict[str, str] | None = setting(flag="feature-gates")
    horizontal_pod_autoscaler_cpu_initialization_period: str | None = setting(
        flag="horizontal-pod-autoscaler-cpu-initialization-period", check=duration
    )
    horizontal_pod_autoscaler_downscale_stabilization: str | None = setting(
        flag="horizontal-pod-autoscaler-downscale-stabilization", check=duration
    )
    horizontal_pod_autoscaler_initial_readiness_delay: str | None = setting(
        flag="horizontal-pod-autoscaler-initial-readiness-delay", check=duration
    )
    horizontal_pod_autoscaler_sync_period: str | None = setting(
        flag="horizontal-pod-autoscaler-sync-period", check=duration
    )
    horizontal_pod_autoscaler_tolerance: str | None = setting(
        flag="horizontal-pod-autoscaler-tolerance", check=quantity
    )
    image: str | None = spec_field("The image it runs from")
    kube_api_burst: int | None = setting(flag="kube-api-burst", name="kubeAPIBurst")
    kube_api_qps: str | None = setting(flag="kube-api-qps", name="kubeAPIQPS", check=quantity)
    kubeconfig: str | None = setting(flag="kubeconfig")
    large_cluster_size_threshold: int | None = setting(flag="large-cluster-size-threshold")
    leader_election: LeaderElection | None = spec_field()
    log_format: str | None = setting(flag="logging-format")
    log_level: int | None = setting(flag="v")
    memory_limit: str | None = spec_field("Memory limit of its pod", check=quantity)
    memory_request: str | None = spec_field("Memory request of its pod", check=quantity)
    min_resync_period: str | None = setting(flag="min-resync-period")
    node_cidr_mask_size: int | None = setting(flag="node-cidr-mask-size", name="nodeCIDRMaskSize")
    node_cidr_mask_size_ipv4: int | None = setting(flag="node-cidr-mask-size-ipv4", name="nodeCIDRMaskSizeIPv4")
    node_cidr_mask_size_ipv6: int | None = setting(flag="node-cidr-mask-size-ipv6", name="nodeCIDRMaskSizeIPv6")
    node_monitor_grace_period: str | None = setting(flag="node-monitor-grace-period", check=duration)
    node_monitor_period: str | None = setting(flag="node-monitor-period", check=duration)
    pod_eviction_timeout: str | None = setting(flag="pod-eviction-timeout", check=duration)
    requestheader_client_ca_file: str | None = setting(
        flag="requestheader-client-ca-file", name="requestheaderClientCAFile"
    )
    root_ca_file: str | None = setting(flag="root-ca-file", name="rootCAFile")
    secure_port: int | None = setting(flag="secure-port")
    service_account_private_key_file: str | None = setting(flag="service-account-private-key-file")
    service_cluster_ip_range: str | None = setting(flag="service-cluster-ip-range", name="serviceClusterIPRange")
    terminated_pod_gc_threshold: int | None = setting(
        flag="terminated-pod-gc-threshold", name="terminatedPodGCThreshold"
    )
    tls_cert_file: str | None = setting(flag="tls-cert-file")
    tls_cipher_suites: list[str] | None = setting(flag="tls-cipher-suites")
    tls_min_version: str | None = setting(flag="tls-min-version")
    tls_private_key_file: str | None = setting(flag="tls-private-key-file")
    unhealthy_zone_threshold: float | None = setting(flag="unhealthy-zone-threshold")
    use_service_account_credentials: bool | None = setting(flag="use-service-account-credentials")
    extra_flags: dict[str, Any] | None = spec_field("Any other flag of this version, without the leading dashes")
