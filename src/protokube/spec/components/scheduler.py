"""Settings of kube-scheduler: KubeSchedulerConfiguration, and flags for what that file does not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.components.leader import LeaderElection
from protokube.spec.fields import quantity, setting, spec_field


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeScheduler:
    """Settings of kube-scheduler: KubeSchedulerConfiguration, and flags for what that file does not have."""

    authentication_kubeconfig: str | None = setting(flag="authentication-kubeconfig")
    authorization_always_allow_paths: list[str] | None = setting(flag="authorization-always-allow-paths")
    authorization_kubeconfig: str | None = setting(flag="authorization-kubeconfig")
    bind_address: str | None = setting(flag="bind-address")
    client_ca_file: str | None = setting(flag="client-ca-file", name="clientCAFile")
    cpu_limit: str | None = spec_field("CPU limit of its pod", check=quantity)
    cpu_request: str | None = spec_field("CPU request of its pod", check=quantity)
    enable_contention_profiling: bool | None = setting(flag="contention-profiling", file="enableContentionProfiling")
    enable_profiling: bool | None = setting(flag="profiling", file="enableProfiling")
    extenders: list[dict[str, Any]] | None = setting(file="extenders")
    feature_gates: dict[str, str] | None = setting(flag="feature-gates")
    image: str | None = spec_field("The image it runs from")
    kube_api_burst: int | None = setting(flag="kube-api-burst", file="clientConnection.burst", name="kubeAPIBurst")
    kube_api_qps: str | None = setting(
        flag="kube-api-qps", file="clientConnection.qps", form="number", name="kubeAPIQPS", check=quantity
    )
    kubeconfig: str | None = setting(flag="kubeconfig", file="clientConnection.kubeconfig")
    leader_election: LeaderElection | None = spec_field()
    log_format: str | None = setting(flag="logging-format")
    log_level: int | None = setting(flag="v")
    memory_limit: str | None = spec_field("Memory limit of its pod", check=quantity)
    memory_request: str | None = spec_field("Memory request of its pod", check=quantity)
    parallelism: int | None = setting(file="parallelism")
    percentage_of_nodes_to_score: int | None = setting(file="percentageOfNodesToScore")
    pod_initial_backoff_seconds: int | None = setting(file="podInitialBackoffSeconds")
    pod_max_backoff_seconds: int | None = setting(file="podMaxBackoffSeconds")
    profiles: list[dict[str, Any]] | None = setting(file="profiles")
    requestheader_client_ca_file: str | None = setting(
        flag="requestheader-client-ca-file", name="requestheaderClientCAFile"
    )
    secure_port: int | None = setting(flag="secure-port")
    tls_cert_file: str | None = setting(flag="tls-cert-file")
    tls_private_key_file: str | None = setting(flag="tls-private-key-file")
    extra_flags: dict[str, Any] | None = spec_field("Any other flag of this version, without the leading dashes")
