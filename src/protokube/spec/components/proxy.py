"""Settings of kube-proxy: KubeProxyConfiguration; with it, nearly all flags are ignored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import duration, quantity, setting, spec_field


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeProxy:
    """Settings of kube-proxy: KubeProxyConfiguration; with it, nearly all flags are ignored."""

    bind_address: str | None = setting(flag="bind-address", file="bindAddress")
    bind_address_hard_fail: bool | None = setting(file="bindAddressHardFail")
    cluster_cidr: str | None = setting(flag="cluster-cidr", file="clusterCIDR", name="clusterCIDR")
    config_sync_period: str | None = setting(file="configSyncPeriod", check=duration)
    conntrack_max_per_core: int | None = setting(flag="conntrack-max-per-core", file="conntrack.maxPerCore")
    conntrack_min: int | None = setting(flag="conntrack-min", file="conntrack.min")
    conntrack_tcp_be_liberal: bool | None = setting(file="conntrack.tcpBeLiberal", since="1.29")
    conntrack_tcp_close_wait_timeout: str | None = setting(file="conntrack.tcpCloseWaitTimeout", check=duration)
    conntrack_tcp_established_timeout: str | None = setting(file="conntrack.tcpEstablishedTimeout", check=duration)
    conntrack_udp_stream_timeout: str | None = setting(file="conntrack.udpStreamTimeout", since="1.29", check=duration)
    conntrack_udp_timeout: str | None = setting(file="conntrack.udpTimeout", since="1.29", check=duration)
    cpu_limit: str | None = spec_field("CPU limit of its pod", check=quantity)
    cpu_request: str | None = spec_field("CPU request of its pod", check=quantity)
    detect_local_bridge_interface: str | None = setting(file="detectLocal.bridgeInterface", since="1.24")
    detect_local_interface_name_prefix: str | None = setting(file="detectLocal.interfaceNamePrefix", since="1.24")
    detect_local_mode: str | None = setting(file="detectLocalMode")
    enable_profiling: bool | None = setting(file="enableProfiling")
    enabled: bool | None = spec_field("Whether it runs")
    feature_gates: dict[str, str] | None = setting(flag="feature-gates", file="featureGates", form="gates")
    healthz_bind_address: str | None = setting(file="healthzBindAddress")
    hostname_override: str | None = setting(flag="hostname-override", file="hostnameOverride")
    image: str | None = spec_field("The image it runs from")
    iptables_localhost_node_ports: bool | None = setting(file="iptables.localhostNodePorts", since="1.26")
    iptables_masquerade_all: bool | None = setting(file="iptables.masqueradeAll")
    iptables_masquerade_bit: int | None = setting(file="iptables.masqueradeBit")
    iptables_min_sync_period: str | None = setting(file="iptables.minSyncPeriod", check=duration)
    iptables_sync_period: str | None = setting(file="iptables.syncPeriod", check=duration)
    ipvs_exclude_cidrs: list[str] | None = setting(flag="ipvs-exclude-cidrs", file="ipvs.excludeCIDRs")
    ipvs_min_sync_period: str | None = setting(flag="ipvs-min-sync-period", file="ipvs.minSyncPeriod", check=duration)
    ipvs_scheduler: str | None = setting(flag="ipvs-scheduler", file="ipvs.scheduler")
    ipvs_strict_arp: bool | None = setting(file="ipvs.strictARP", name="ipvsStrictARP")
    ipvs_sync_period: str | None = setting(flag="ipvs-sync-period", file="ipvs.syncPeriod", check=duration)
    ipvs_tcp_fin_timeout: str | None = setting(file="ipvs.tcpFinTimeout", check=duration)
    ipvs_tcp_timeout: str | None = setting(file="ipvs.tcpTimeout", check=duration)
    ipvs_udp_timeout: str | None = setting(file="ipvs.udpTimeout", check=duration)
    kubeconfig: str | None = setting(flag="kubeconfig", file="clientConnection.kubeconfig")
    log_level: int | None = setting(flag="v")
    logging: dict[str, Any] | None = setting(file="logging", since="1.28")
    memory_limit: str | None = spec_field("Memory limit of its pod", check=quantity)
    memory_request: str | None = spec_field("Memory request of its pod", check=quantity)
    metrics_bind_address: str | None = setting(flag="metrics-bind-address", file="metricsBindAddress")
    nftables_masquerade_all: bool | None = setting(file="nftables.masqueradeAll", since="1.29")
    nftables_masquerade_bit: int | None = setting(file="nftables.masqueradeBit", since="1.29")
    nftables_min_sync_period: str | None = setting(file="nftables.minSyncPeriod", since="1.29", check=duration)
    nftables_sync_period: str | None = setting(file="nftables.syncPeriod", since="1.29", check=duration)
    node_port_addresses: list[str] | None = setting(file="nodePortAddresses")
    oom_score_adj: int | None = setting(file="oomScoreAdj")
    proxy_mode: str | None = setting(flag="proxy-mode", file="mode")
    show_hidden_metrics_for_version: str | None = setting(file="showHiddenMetricsForVersion")
    extra_flags: dict[str, Any] | None = spec_field("Any other flag of this version, without the leading dashes")
