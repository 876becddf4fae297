"""What is put on machines beside Kubernetes itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import one_of, spec_field

ROLES = ("Master", "Node", "Bastion", "APIServer")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAsset:
    """A file of the user's on every machine of some roles; under the manifest directory it becomes a pod."""

    path: str | None = spec_field("Where it is written")
    content: str = spec_field("What it holds")
    is_base64: bool | None = spec_field("Whether the content is encoded", name="isBase64")
    mode: str | None = spec_field("Its permissions, such as 0440")
    roles: list[str] | None = spec_field("On which machines; all, if unsaid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A systemd unit of the user's, or a container run as one."""

    name: str | None = spec_field("The unit's name")
    enabled: bool | None = spec_field("Whether the unit is started")
    disabled: bool | None = spec_field("Take the hook of this name away again")
    roles: list[str] | None = spec_field("On which machines; all, if unsaid")
    requires: list[str] | None = spec_field("Units it needs")
    before: list[str] | None = spec_field("Units that wait for it")
    manifest: str | None = spec_field("The unit's text")
    use_raw_manifest: bool | None = spec_field("Whether the manifest is the whole unit, not only its service part")
    exec_container: dict[str, Any] | None = spec_field("A container to run instead")


@dataclass(frozen=True, slots=True, kw_only=True)
class Containerd:
    """The container runtime."""

    version: str = spec_field("containerd's own version")
    address: str = spec_field("The socket kubelet talks to")
    root: str | None = spec_field("Where images and containers lie")
    state: str | None = spec_field("Where what does not outlive a boot lies")
    log_level: str | None = spec_field("How much it logs")
    sandbox_image: str = spec_field("The image that holds a pod's namespaces open")
    config_override: str | None = spec_field("The whole configuration file, in place of ours")
    config_additions: dict[str, Any] | None = spec_field("More entries for the configuration file")
    registry_mirrors: dict[str, list[str]] | None = spec_field("For each registry, where to ask first")
    skip_install: bool | None = spec_field("It is on the machine's image already")
    packages: dict[str, Any] | None = spec_field("Where to fetch it from, with hashes")
    runc: dict[str, Any] | None = spec_field("The same for runc")
    selinux_enabled: bool | None = spec_field("Whether containers get SELinux labels")
    nvidia_gpu: dict[str, Any] | None = spec_field("NVIDIA's runtime and driver", name="nvidiaGPU")
    nri: dict[str, Any] | None = spec_field("Plugins of the Node Resource Interface")
    gvisor: dict[str, Any] | None = spec_field("The gVisor runtime")
    use_ecr_credentials_for_mirrors: bool | None = spec_field(
        "AWS: whether mirrors are asked with the registry's credentials", name="useECRCredentialsForMirrors"
    )
    install_cri_ctl: bool | None = spec_field("Whether crictl is put beside it")
    install_nerd_ctl: bool | None = spec_field("Whether nerdctl is put beside it")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDNS:
    """The DNS server pods ask."""

    provider: str = spec_field("Which server", check=one_of("CoreDNS", "KubeDNS"))
    domain: str = spec_field("The domain it answers for")
    server_ip: str = spec_field("The address pods ask", name="serverIP")
    image: str = spec_field("The image it runs from")
    replicas: int = spec_field("How many run")
    stub_domains: dict[str, list[str]] | None = spec_field("Domains answered by servers of their own")
    upstream_nameservers: list[str] | None = spec_field("Whom it asks for the rest")
    external_core_file: str | None = spec_field("The whole Corefile, in place of ours")
    cache_max_size: int | None = spec_field("How many answers it keeps")
    cache_max_concurrent: int | None = spec_field("How many questions it passes on at once")
    cpu_request: str | None = spec_field("CPU each is sure of")
    memory_request: str | None = spec_field("Memory each is sure of")
    memory_limit: str | None = spec_field("The most memory each may use")
    node_local_dns: dict[str, Any] | None = spec_field("A cache on each node", name="nodeLocalDNS")
    tolerations: list[dict[str, Any]] | None = spec_field("Taints its pods live with")
    affinity: dict[str, Any] | None = spec_field("Where its pods should stand")
    pod_annotations: dict[str, str] | None = spec_field("Annotations of its pods")


@dataclass(frozen=True, slots=True, kw_only=True)
class DNSController:
    """What turns annotations into records."""

    enabled: bool = spec_field("Whether it runs")
    watch_ingress: bool = spec_field("Whether it looks at ingresses too")
    watch_namespace: str | None = spec_field("Only this namespace; all, if unsaid")
    provider: str | None = spec_field(
        "Where its zones are; without one it does not run", check=one_of("aws-route53", "rfc2136")
    )
    zones: list[str] | None = spec_field(
        "Zones it may write to: example.com, example.com/ID, */ID or *; all, if unsaid"
    )
    server: str | None = spec_field("rfc2136: the primary server of the zones, ADDRESS or ADDRESS:PORT")
    key_file: str | None = spec_field("rfc2136: where the key is on masters; it comes from the secret dns-update-key")
    image: str | None = spec_field("The image it runs from")
    kubeconfig: str | None = spec_field("How it reaches the API")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assets:
    """Where images and files come from, for machines that cannot reach the usual places."""

    container_registry: str | None = spec_field("A registry that holds copies of all images")
    container_proxy: str | None = spec_field("A registry that passes requests through")
    file_repository: str | None = spec_field("A server that holds copies of all files")
