"""What is put on machines beside Kubernetes itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import one_of, said

ROLES = ("Master", "Node", "Bastion", "APIServer")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAsset:
    """A file of the user's on every machine of some roles; under the manifest directory it becomes a pod."""

    path: str | None = said("Where it is written")
    content: str = said("What it holds")
    is_base64: bool | None = said("Whether the content is encoded", name="isBase64")
    mode: str | None = said("Its permissions, such as 0440")
    roles: list[str] | None = said("On which machines; all, if unsaid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A systemd unit of the user's, or a container run as one."""

    name: str | None = said("The unit's name")
    enabled: bool | None = said()
    disabled: bool | None = said("Take the hook of this name away again")
    roles: list[str] | None = said("On which machines; all, if unsaid")
    requires: list[str] | None = said("Units it needs")
    before: list[str] | None = said("Units that wait for it")
    manifest: str | None = said("The unit's text")
    use_raw_manifest: bool | None = said("Whether the manifest is the whole unit, not only its service part")
    exec_container: dict[str, Any] | None = said("A container to run instead")


@dataclass(frozen=True, slots=True, kw_only=True)
class Containerd:
    """The container runtime."""

    version: str = said()
    address: str = said("The socket kubelet talks to")
    root: str | None = said("Where images and containers lie")
    state: str | None = said()
    log_level: str | None = said()
    sandbox_image: str = said("The image that holds a pod's namespaces open")
    config_override: str | None = said("The whole configuration file, in place of ours")
    config_additions: dict[str, Any] | None = said("More entries for the configuration file")
    registry_mirrors: dict[str, list[str]] | None = said("For each registry, where to ask first")
    skip_install: bool | None = said("It is on the machine's image already")
    packages: dict[str, Any] | None = said("Where to fetch it from, with hashes")
    runc: dict[str, Any] | None = said("The same for runc")
    selinux_enabled: bool | None = said()
    nvidia_gpu: dict[str, Any] | None = said(name="nvidiaGPU")
    nri: dict[str, Any] | None = said()
    gvisor: dict[str, Any] | None = said()
    use_ecr_credentials_for_mirrors: bool | None = said(name="useECRCredentialsForMirrors")
    install_cri_ctl: bool | None = said()
    install_nerd_ctl: bool | None = said()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDNS:
    """The DNS server pods ask."""

    provider: str = said(check=one_of("CoreDNS", "KubeDNS"))
    domain: str = said()
    server_ip: str = said(name="serverIP")
    image: str = said()
    replicas: int = said()
    stub_domains: dict[str, list[str]] | None = said("Domains answered by servers of their own")
    upstream_nameservers: list[str] | None = said("Whom it asks for the rest")
    external_core_file: str | None = said("The whole Corefile, in place of ours")
    cache_max_size: int | None = said()
    cache_max_concurrent: int | None = said()
    cpu_request: str | None = said()
    memory_request: str | None = said()
    memory_limit: str | None = said()
    node_local_dns: dict[str, Any] | None = said("A cache on each node", name="nodeLocalDNS")
    tolerations: list[dict[str, Any]] | None = said()
    affinity: dict[str, Any] | None = said()
    pod_annotations: dict[str, str] | None = said()


@dataclass(frozen=True, slots=True, kw_only=True)
class DNSController:
    """What turns annotations into records."""

    enabled: bool = said()
    watch_ingress: bool = said()
    watch_namespace: str | None = said("Only this namespace; all, if unsaid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assets:
    """Where images and files come from, for machines that cannot reach the usual places."""

    container_registry: str | None = said("A registry that holds copies of all images")
    container_proxy: str | None = said("A registry that passes requests through")
    file_repository: str | None = said("A server that holds copies of all files")
