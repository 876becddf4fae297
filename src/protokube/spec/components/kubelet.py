"""Settings of a kubelet: KubeletConfiguration, and flags only for what that file does not have.

Most of its flags are deprecated in favour of the file; `since` is the version that added an entry to the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import duration, setting, spec_field


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubelet:
    """Settings of a kubelet: KubeletConfiguration, and flags only for what that file does not have."""

    address: str | None = setting(file="address")
    allowed_unsafe_sysctls: list[str] | None = setting(flag="allowed-unsafe-sysctls", file="allowedUnsafeSysctls")
    anonymous_auth: bool | None = setting(flag="anonymous-auth", file="authentication.anonymous.enabled")
    authentication_token_webhook: bool | None = setting(
        flag="authentication-token-webhook", file="authentication.webhook.enabled"
    )
    authentication_token_webhook_cache_ttl: str | None = setting(
        flag="authentication-token-webhook-cache-ttl", file="authentication.webhook.cacheTTL", check=duration
    )
    authorization_mode: str | None = setting(flag="authorization-mode", file="authorization.mode")
    authorization_webhook_cache_authorized_ttl: str | None = setting(
        file="authorization.webhook.cacheAuthorizedTTL",
        name="authorizationWebhookCacheAuthorizedTTL",
        check=duration,
    )
    authorization_webhook_cache_unauthorized_ttl: str | None = setting(
        file="authorization.webhook.cacheUnauthorizedTTL",
        name="authorizationWebhookCacheUnauthorizedTTL",
        check=duration,
    )
    bootstrap_kubeconfig: str | None = setting(flag="bootstrap-kubeconfig")
    cert_dir: str | None = setting(flag="cert-dir")
    cgroup_driver: str | None = setting(flag="cgroup-driver", file="cgroupDriver")
    cgroup_root: str | None = setting(flag="cgroup-root", file="cgroupRoot")
    cgroups_per_qos: bool | None = setting(file="cgroupsPerQOS", name="cgroupsPerQOS")
    client_ca_file: str | None = setting(flag="client-ca-file", file="authentication.x509.clientCAFile")
    cloud_provider: str | None = setting(flag="cloud-provider")
    cluster_dns: str | None = setting(flag="cluster-dns", file="clusterDNS", form="words", name="clusterDNS")
    cluster_domain: str | None = setting(flag="cluster-domain", file="clusterDomain")
    cni_bin_dir: str | None = setting(flag="cni-bin-dir")
    cni_conf_dir: str | None = setting(flag="cni-conf-dir")
    config_map_and_secret_change_detection_strategy: str | None = setting(
        file="configMapAndSecretChangeDetectionStrategy"
    )
    container_log_max_files: int | None = setting(flag="container-log-max-files", file="containerLogMaxFiles")
    container_log_max_size: str | None = setting(flag="container-log-max-size", file="containerLogMaxSize")
    container_log_max_workers: int | None = setting(file="containerLogMaxWorkers", since="1.30")
    container_log_monitor_interval: str | None = setting(
        file="containerLogMonitorInterval", since="1.30", check=duration
    )
    container_runtime: str | None = setting(flag="container-runtime")
    container_runtime_endpoint: str | None = setting(
        flag="container-runtime-endpoint", file="containerRuntimeEndpoint", since="1.27"
    )
    content_type: str | None = setting(file="contentType")
    cpu_cfs_quota: bool | None = setting(flag="cpu-cfs-quota", file="cpuCFSQuota", name="cpuCFSQuota")
    cpu_cfs_quota_period: str | None = setting(
        flag="cpu-cfs-quota-period", file="cpuCFSQuotaPeriod", name="cpuCFSQuotaPeriod", check=duration
    )
    cpu_manager_policy: str | None = setting(flag="cpu-manager-policy", file="cpuManagerPolicy")
    cpu_manager_policy_options: dict[str, str] | None = setting(file="cpuManagerPolicyOptions", since="1.22")
    cpu_manager_reconcile_period: str | None = setting(file="cpuManagerReconcilePeriod", check=duration)
    crash_loop_back_off_max_container_restart_period: str | None = setting(
        file="crashLoopBackOff.maxContainerRestartPeriod", since="1.32", check=duration
    )
    enable_cadvisor_json_endpoints: bool | None = setting(flag="enable-cadvisor-json-endpoints")
    enable_contention_profiling: bool | None = setting(file="enableContentionProfiling")
    enable_controller_attach_detach: bool | None = setting(file="enableControllerAttachDetach")
    enable_debug_flags_handler: bool | None = setting(file="enableDebugFlagsHandler", since="1.21")
    enable_debugging_handlers: bool | None = setting(flag="enable-debugging-handlers", file="enableDebuggingHandlers")
    enable_profiling_handler: bool | None = setting(file="enableProfilingHandler", since="1.21")
    enable_server: bool | None = setting(file="enableServer")
    enable_system_log_handler: bool | None = setting(file="enableSystemLogHandler")
    enable_system_log_query: bool | None = setting(file="enableSystemLogQuery", since="1.27")
    enforce_node_allocatable: str | None = setting(
        flag="enforce-node-allocatable", file="enforceNodeAllocatable", form="words"
    )
    event_burst: int | None = setting(flag="event-burst", file="eventBurst")
    event_record_qps: int | None = setting(file="eventRecordQPS", name="eventRecordQPS")
    eviction_hard: str | None = setting(flag="eviction-hard", file="evictionHard", form="thresholds")
    eviction_max_pod_grace_period: int | None = setting(
        flag="eviction-max-pod-grace-period", file="evictionMaxPodGracePeriod"
    )
    eviction_minimum_reclaim: str | None = setting(
        flag="eviction-minimum-reclaim", file="evictionMinimumReclaim", form="pairs"
    )
    eviction_pressure_transition_period: str | None = setting(
        flag="eviction-pressure-transition-period", file="evictionPressureTransitionPeriod", check=duration
    )
    eviction_soft: str | None = setting(flag="eviction-soft", file="evictionSoft", form="thresholds")
    eviction_soft_grace_period: str | None = setting(
        flag="eviction-soft-grace-period", file="evictionSoftGracePeriod", form="pairs"
    )
    experimental_allocatable_ignore_eviction: bool | None = setting(flag="experimental-allocatable-ignore-eviction")
    fail_cgroup_v1: bool | None = setting(file="failCgroupV1", since="1.31")
    fail_swap_on: bool | None = setting(flag="fail-swap-on", file="failSwapOn")
    feature_gates: dict[str, str] | None = setting(flag="feature-gates", file="featureGates", form="gates")
    file_check_frequency: str | None = setting(file="fileCheckFrequency", check=duration)
    hairpin_mode: str | None = setting(flag="hairpin-mode", file="hairpinMode")
    healthz_bind_address: str | None = setting(file="healthzBindAddress")
    healthz_port: int | None = setting(file="healthzPort")
    hostname_override: str | None = setting(flag="hostname-override")
    housekeeping_interval: str | None = setting(flag="housekeeping-interval", check=duration)
    http_check_frequency: str | None = setting(file="httpCheckFrequency", check=duration)
    image_credential_provider_bin_dir: str | None = setting(flag="image-credential-provider-bin-dir")
    image_credential_provider_config: str | None = setting(flag="image-credential-provider-config")
    image_gc_high_threshold_percent: int | None = setting(
        flag="image-gc-high-threshold", file="imageGCHighThresholdPercent", name="imageGCHighThresholdPercent"
    )
    image_gc_low_threshold_percent: int | None = setting(
        flag="image-gc-low-threshold", file="imageGCLowThresholdPercent", name="imageGCLowThresholdPercent"
    )
    image_maximum_gc_age: str | None = setting(
        flag="image-maximum-gc-age",
        file="imageMaximumGCAge",
        since="1.29",
        name="imageMaximumGCAge",
        check=duration,
    )
    image_minimum_gc_age: str | None = setting(
        flag="image-minimum-gc-age", file="imageMinimumGCAge", name="imageMinimumGCAge", check=duration
    )
    image_pull_credentials_verification_policy: str | None = setting(
        file="imagePullCredentialsVerificationPolicy", since="1.33"
    )
    image_pull_progress_deadline: str | None = setting(flag="image-pull-progress-deadline", check=duration)
    image_service_endpoint: str | None = setting(
        flag="image-service-endpoint", file="imageServiceEndpoint", since="1.27"
    )
    iptables_drop_bit: int | None = setting(file="iptablesDropBit")
    iptables_masquerade_bit: int | None = setting(file="iptablesMasqueradeBit")
    kernel_memcg_notification: bool | None = setting(flag="kernel-memcg-notification", file="kernelMemcgNotification")
    kube_api_burst: int | None = setting(file="kubeAPIBurst", name="kubeAPIBurst")
    kube_api_qps: int | None = setting(flag="kube-api-qps", file="kubeAPIQPS", name="kubeAPIQPS")
    kube_reserved: dict[str, str] | None = setting(flag="kube-reserved", file="kubeReserved")
    kube_reserved_cgroup: str | None = setting(flag="kube-reserved-cgroup", file="kubeReservedCgroup")
    kubeconfig_path: str | None = setting(flag="kubeconfig")
    kubelet_cgroups: str | None = setting(flag="kubelet-cgroups", file="kubeletCgroups")
    local_storage_capacity_isolation: bool | None = setting(file="localStorageCapacityIsolation", since="1.25")
    log_format: str | None = setting(flag="logging-format", file="logging.format")
    log_level: int | None = setting(flag="v")
    make_ip_tables_util_chains: bool | None = setting(file="makeIPTablesUtilChains", name="makeIPTablesUtilChains")
    max_open_files: int | None = setting(file="maxOpenFiles")
    max_parallel_image_pulls: int | None = setting(file="maxParallelImagePulls", since="1.27")
    max_pods: int | None = setting(flag="max-pods", file="maxPods")
    memory_manager_policy: str | None = setting(file="memoryManagerPolicy", since="1.21")
    memory_reservation_policy: str | None = setting(file="memoryReservationPolicy", since="1.36")
    memory_swap_behavior: str | None = setting(file="memorySwap.swapBehavior", since="1.22")
    memory_throttling_factor: float | None = setting(file="memoryThrottlingFactor", since="1.22")
    merge_default_eviction_settings: bool | None = setting(file="mergeDefaultEvictionSettings", since="1.33")
    network_plugin_mtu: int | None = setting(flag="network-plugin-mtu", name="networkPluginMTU")
    network_plugin_name: str | None = setting(flag="network-plugin")
    node_ip: str | None = setting(flag="node-ip", name="nodeIP")
    node_labels: dict[str, str] | None = setting(flag="node-labels")
    node_lease_duration_seconds: int | None = setting(file="nodeLeaseDurationSeconds")
    node_status_max_images: int | None = setting(file="nodeStatusMaxImages")
    node_status_report_frequency: str | None = setting(file="nodeStatusReportFrequency", check=duration)
    node_status_update_frequency: str | None = setting(
        flag="node-status-update-frequency", file="nodeStatusUpdateFrequency", check=duration
    )
    non_masquerade_cidr: str | None = setting(flag="non-masquerade-cidr", name="nonMasqueradeCIDR")
    oom_score_adj: int | None = setting(file="oomScoreAdj")
    pod_cidr: str | None = setting(flag="pod-cidr", file="podCIDR", name="podCIDR")
    pod_infra_container_image: str | None = setting(flag="pod-infra-container-image")
    pod_logs_dir: str | None = setting(file="podLogsDir", since="1.30")
    pod_manifest_path: str | None = setting(flag="pod-manifest-path", file="staticPodPath")
    pod_pids_limit: int | None = setting(flag="pod-max-pids", file="podPidsLimit")
    pods_per_core: int | None = setting(file="podsPerCore")
    port: int | None = setting(file="port")
    preloaded_images_verification_allowlist: list[str] | None = setting(
        file="preloadedImagesVerificationAllowlist", since="1.33"
    )
    protect_kernel_defaults: bool | None = setting(flag="protect-kernel-defaults", file="protectKernelDefaults")
    provider_id: str | None = setting(file="providerID", name="providerID")
    qos_reserved: dict[str, str] | None = setting(file="qosReserved")
    read_only_port: int | None = setting(flag="read-only-port", file="readOnlyPort")
    register_node: bool | None = setting(flag="register-node", file="registerNode", since="1.23")
    register_schedulable: bool | None = setting(flag="register-schedulable")
    registry_burst: int | None = setting(flag="registry-burst", file="registryBurst")
    registry_pull_qps: int | None = setting(flag="registry-qps", file="registryPullQPS", name="registryPullQPS")
    reserved_memory: list[dict[str, Any]] | None = setting(file="reservedMemory", since="1.21")
    reserved_system_cpus: str | None = setting(file="reservedSystemCPUs", name="reservedSystemCPUs")
    resolv_conf: str | None = setting(flag="resolv-conf", file="resolvConf")
    root_dir: str | None = setting(flag="root-dir")
    rotate_certificates: bool | None = setting(flag="rotate-certificates", file="rotateCertificates")
    runtime_cgroups: str | None = setting(flag="runtime-cgroups")
    runtime_request_timeout: str | None = setting(
        flag="runtime-request-timeout", file="runtimeRequestTimeout", check=duration
    )
    seccomp_default: bool | None = setting(flag="seccomp-default", file="seccompDefault", since="1.22")
    seccomp_profile_root: str | None = setting(flag="seccomp-profile-root")
    serialize_image_pulls: bool | None = setting(flag="serialize-image-pulls", file="serializeImagePulls")
    server_tls_bootstrap: bool | None = setting(file="serverTLSBootstrap", name="serverTLSBootstrap")
    show_hidden_metrics_for_version: str | None = setting(file="showHiddenMetricsForVersion")
    shutdown_grace_period: str | None = setting(file="shutdownGracePeriod", check=duration)
    shutdown_grace_period_by_pod_priority: list[dict[str, Any]] | None = setting(
        file="shutdownGracePeriodByPodPriority", since="1.23"
    )
    shutdown_grace_period_critical_pods: str | None = setting(file="shutdownGracePeriodCriticalPods", check=duration)
    single_process_oom_kill: bool | None = setting(
        file="singleProcessOOMKill", since="1.32", name="singleProcessOOMKill"
    )
    static_pod_url: str | None = setting(file="staticPodURL", name="staticPodURL")
    static_pod_url_header: dict[str, Any] | None = setting(file="staticPodURLHeader", name="staticPodURLHeader")
    streaming_connection_idle_timeout: str | None = setting(
        flag="streaming-connection-idle-timeout", file="streamingConnectionIdleTimeout", check=duration
    )
    sync_frequency: str | None = setting(file="syncFrequency", check=duration)
    system_cgroups: str | None = setting(flag="system-cgroups", file="systemCgroups")
    system_reserved: dict[str, str] | None = setting(flag="system-reserved", file="systemReserved")
    system_reserved_cgroup: str | None = setting(flag="system-reserved-cgroup", file="systemReservedCgroup")
    taints: list[str] | None = setting(
        flag="register-with-taints", file="registerWithTaints", since="1.23", form="taints"
    )
    tls_cert_file: str | None = setting(flag="tls-cert-file", file="tlsCertFile")
    tls_cipher_suites: list[str] | None = setting(flag="tls-cipher-suites", file="tlsCipherSuites")
    tls_curve_preferences: list[int] | None = setting(file="tlsCurvePreferences", since="1.36")
    tls_min_version: str | None = setting(flag="tls-min-version", file="tlsMinVersion")
    tls_private_key_file: str | None = setting(flag="tls-private-key-file", file="tlsPrivateKeyFile")
    topology_manager_policy: str | None = setting(flag="topology-manager-policy", file="topologyManagerPolicy")
    topology_manager_policy_options: dict[str, str] | None = setting(file="topologyManagerPolicyOptions", since="1.26")
    topology_manager_scope: str | None = setting(file="topologyManagerScope")
    tracing: dict[str, Any] | None = setting(file="tracing", since="1.25")
    user_namespaces_ids_per_pod: int | None = setting(file="userNamespaces.idsPerPod", since="1.33")
    volume_plugin_directory: str | None = setting(flag="volume-plugin-dir", file="volumePluginDir")
    volume_stats_agg_period: str | None = setting(
        flag="volume-stats-agg-period", file="volumeStatsAggPeriod", check=duration
    )
    extra_flags: dict[str, Any] | None = spec_field("Any other flag of this version, without the leading dashes")
