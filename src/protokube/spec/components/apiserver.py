"""Settings of kube-apiserver: flags, and the files some of them point to.

It has no configuration file of its own; audit policy, admission and encryption have separate files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import duration, quantity, setting, spec_field


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeAPIServer:
    """Settings of kube-apiserver: flags, and the files some of them point to."""

    additional_service_account_issuers: list[str] | None = spec_field("Additional issuers whose tokens are accepted")
    admission_configuration: dict[str, Any] | None = spec_field(
        "An AdmissionConfiguration, written to a file of its own"
    )
    admission_control_config_file: str | None = setting(flag="admission-control-config-file")
    advertise_address: str | None = setting(flag="advertise-address")
    allow_privileged: bool | None = setting(flag="allow-privileged")
    anonymous_auth: bool | None = setting(flag="anonymous-auth")
    api_audiences: list[str] | None = setting(flag="api-audiences")
    api_server_count: int | None = setting(flag="apiserver-count")
    append_admission_plugins: list[str] | None = spec_field("Admission plugins in addition to the default ones")
    audit_log_format: str | None = setting(flag="audit-log-format")
    audit_log_max_age: int | None = setting(flag="audit-log-maxage")
    audit_log_max_backups: int | None = setting(flag="audit-log-maxbackup")
    audit_log_max_size: int | None = setting(flag="audit-log-maxsize")
    audit_log_path: str | None = setting(flag="audit-log-path")
    audit_policy: dict[str, Any] | None = spec_field("An audit.k8s.io Policy, written to a file of its own")
    audit_policy_file: str | None = setting(flag="audit-policy-file")
    audit_webhook_batch_buffer_size: int | None = setting(flag="audit-webhook-batch-buffer-size")
    audit_webhook_batch_max_size: int | None = setting(flag="audit-webhook-batch-max-size")
    audit_webhook_batch_max_wait: str | None = setting(flag="audit-webhook-batch-max-wait", check=duration)
    audit_webhook_batch_throttle_burst: int | None = setting(flag="audit-webhook-batch-throttle-burst")
    audit_webhook_batch_throttle_enable: bool | None = setting(flag="audit-webhook-batch-throttle-enable")
    audit_webhook_batch_throttle_qps: str | None = setting(flag="audit-webhook-batch-throttle-qps", check=quantity)
    audit_webhook_config_file: str | None = setting(flag="audit-webhook-config-file")
    audit_webhook_initial_backoff: str | None = setting(flag="audit-webhook-initial-backoff", check=duration)
    audit_webhook_mode: str | None = setting(flag="audit-webhook-mode")
    authentication_config_file: str | None = setting(flag="authentication-config")
    authentication_configuration: dict[str, Any] | None = spec_field(
        "An AuthenticationConfiguration, written to a file of its own"
    )
    authentication_token_webhook_cache_ttl: str | None = setting(
        flag="authentication-token-webhook-cache-ttl", check=duration
    )
    authentication_token_webhook_config_file: str | None = setting(flag="authentication-token-webhook-config-file")
    authorization_mode: str | None = setting(flag="authorization-mode")
    authorization_webhook_cache_authorized_ttl: str | None = setting(
        flag="authorization-webhook-cache-authorized-ttl", check=duration
    )
    authorization_webhook_cache_unauthorized_ttl: str | None = setting(
        flag="authorization-webhook-cache-unauthorized-ttl", check=duration
    )
    authorization_webhook_config_file: str | None = setting(flag="authorization-webhook-config-file")
    bind_address: str | None = setting(flag="bind-address")
    client_ca_file: str | None = setting(flag="client-ca-file", name="clientCAFile")
    cloud_provider: str | None = setting(flag="cloud-provider")
    compaction_interval: str | None = setting(flag="etcd-compaction-interval", check=duration)
    cors_allowed_origins: list[str] | None = setting(flag="cors-allowed-origins")
    cpu_limit: str | None = spec_field("CPU limit of its pod", check=quantity)
    cpu_request: str | None = spec_field("CPU request of its pod", check=quantity)
    default_not_ready_toleration_seconds: int | None = setting(flag="default-not-ready-toleration-seconds")
    default_unreachable_toleration_seconds: int | None = setting(flag="default-unreachable-toleration-seconds")
    delete_collection_workers: int | None = setting(flag="delete-collection-workers")
    disable_admission_plugins: list[str] | None = setting(flag="disable-admission-plugins")
    egress_selector_config_file: str | None = setting(flag="egress-selector-config-file")
    enable_admission_plugins: list[str] | None = setting(flag="enable-admission-plugins")
    enable_aggregator_routing: bool | None = setting(flag="enable-aggregator-routing")
    enable_bootstrap_token_auth: bool | None = setting(flag="enable-bootstrap-token-auth")
    enable_contention_profiling: bool | None = setting(flag="contention-profiling")
    enable_priority_and_fairness: bool | None = setting(flag="enable-priority-and-fairness")
    enable_profiling: bool | None = setting(flag="profiling")
    encryption_provider_config: str | None = setting(flag="encryption-provider-config")
    env: list[dict[str, Any]] | None = spec_field("Additional environment variables of its container")
    etcd_ca_file: str | None = setting(flag="etcd-cafile")
    etcd_cert_file: str | None = setting(flag="etcd-certfile")
    etcd_key_file: str | None = setting(flag="etcd-keyfile")
    etcd_servers: list[str] | None = setting(flag="etcd-servers")
    etcd_servers_overrides: list[str] | None = setting(flag="etcd-servers-overrides")
    event_ttl: str | None = setting(flag="event-ttl", name="eventTTL", check=duration)
    external_hostname: str | None = setting(flag="external-hostname")
    feature_gates: dict[str, str] | None = setting(flag="feature-gates")
    goaway_chance: str | None = setting(flag="goaway-chance")
    http2_max_streams_per_connection: int | None = setting(flag="http2-max-streams-per-connection")
    image: str | None = spec_field("The image it runs from")
    kubelet_certificate_authority: str | None = setting(flag="kubelet-certificate-authority")
    kubelet_client_certificate: str | None = setting(flag="kubelet-client-certificate")
    kubelet_client_key: str | None = setting(flag="kubelet-client-key")
    kubelet_preferred_address_types: list[str] | None = setting(flag="kubelet-preferred-address-types")
    log_format: str | None = setting(flag="logging-format")
    log_level: int | None = setting(flag="v")
    max_connection_bytes_per_sec: int | None = setting(flag="max-connection-bytes-per-sec")
    max_mutating_requests_inflight: int | None = setting(flag="max-mutating-requests-inflight")
    max_requests_inflight: int | None = setting(flag="max-requests-inflight")
    memory_limit: str | None = spec_field("Memory limit of its pod", check=quantity)
    memory_request: str | None = spec_field("Memory request of its pod", check=quantity)
    min_request_timeout: int | None = setting(flag="min-request-timeout")
    oidc_ca_file: str | None = setting(flag="oidc-ca-file", name="oidcCAFile")
    oidc_client_id: str | None = setting(flag="oidc-client-id", name="oidcClientID")
    oidc_groups_claim: str | None = setting(flag="oidc-groups-claim")
    oidc_groups_prefix: str | None = setting(flag="oidc-groups-prefix")
    oidc_issuer_url: str | None = setting(flag="oidc-issuer-url", name="oidcIssuerURL")
    oidc_required_claim: list[str] | None = setting(flag="oidc-required-claim", repeat=True)
    oidc_username_claim: str | None = setting(flag="oidc-username-claim")
    oidc_username_prefix: str | None = setting(flag="oidc-username-prefix")
    proxy_client_cert_file: str | None = setting(flag="proxy-client-cert-file")
    proxy_client_key_file: str | None = setting(flag="proxy-client-key-file")
    request_timeout: str | None = setting(flag="request-timeout", check=duration)
    requestheader_allowed_names: list[str] | None = setting(flag="requestheader-allowed-names")
    requestheader_client_ca_file: str | None = setting(
        flag="requestheader-client-ca-file", name="requestheaderClientCAFile"
    )
    requestheader_extra_header_prefixes: list[str] | None = setting(flag="requestheader-extra-headers-prefix")
    requestheader_group_headers: list[str] | None = setting(flag="requestheader-group-headers")
    requestheader_username_headers: list[str] | None = setting(flag="requestheader-username-headers")
    runtime_config: dict[str, str] | None = setting(flag="runtime-config")
    secure_port: int | None = setting(flag="secure-port")
    service_account_issuer: str | None = setting(flag="service-account-issuer")
    service_account_jwksuri: str | None = setting(flag="service-account-jwks-uri", name="serviceAccountJWKSURI")
    service_account_key_file: list[str] | None = setting(flag="service-account-key-file", repeat=True)
    service_account_lookup: bool | None = setting(flag="service-account-lookup")
    service_account_max_token_expiration: str | None = setting(
        flag="service-account-max-token-expiration", check=duration
    )
    service_account_signing_key_file: str | None = setting(flag="service-account-signing-key-file")
    service_cluster_ip_range: str | None = setting(flag="service-cluster-ip-range", name="serviceClusterIPRange")
    service_node_port_range: str | None = setting(flag="service-node-port-range")
    shutdown_delay_duration: str | None = setting(flag="shutdown-delay-duration", check=duration)
    storage_backend: str | None = setting(flag="storage-backend")
    storage_initialization_timeout: str | None = setting(flag="storage-initialization-timeout", check=duration)
    strict_transport_security_directives: list[str] | None = setting(flag="strict-transport-security-directives")
    tls_cert_file: str | None = setting(flag="tls-cert-file")
    tls_cipher_suites: list[str] | None = setting(flag="tls-cipher-suites")
    tls_min_version: str | None = setting(flag="tls-min-version")
    tls_private_key_file: str | None = setting(flag="tls-private-key-file")
    tls_sni_cert_key: list[str] | None = setting(flag="tls-sni-cert-key", repeat=True)
    token_auth_file: str | None = setting(flag="token-auth-file")
    tracing_config_file: str | None = setting(flag="tracing-config-file")
    watch_cache: bool | None = setting(flag="watch-cache")
    watch_cache_sizes: list[str] | None = setting(flag="watch-cache-sizes")
    extra_flags: dict[str, Any] | None = spec_field("Any other flag of this version, without the leading dashes")
