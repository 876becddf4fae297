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
    enabled: bool | None = said("Whether the unit is started")
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

    version: str = said("containerd's own version")
    address: str = said("The socket kubelet talks to")
    root: str | None = said("Where images and containers lie")
    state: str | None = said("Where what does not outlive a boot lies")
    log_level: str | None = said("How much it logs")
    sandbox_image: str = said("The image that holds a pod's namespaces open")
    config_override: str | None = said("The whole configuration file, in place of ours")
    config_additions: dict[str, Any] | None = said("More entries for the configuration file")
    registry_mirrors: dict[str, list[str]] | None = said("For each registry, where to ask first")
    skip_install: bool | None = said("It is on the machine's image already")
    packages: dict[str, Any] | None = said("Where to fetch it from, with hashes")
    runc: dict[str, Any] | None = said("The same for runc")
    selinux_enabled: bool | None = said("Whether containers get SELinux labels")
    nvidia_gpu: dict[str, Any] | None = said("NVIDIA's runtime and driver", name="nvidiaGPU")
    nri: dict[str, Any] | None = said("Plugins of the Node Resource Interface")
    gvisor: dict[str, Any] | None = said("The gVisor runtime")
    use_ecr_credentials_for_mirrors: bool | None = said(
        "AWS: whether mirrors are asked with the registry's credentials", name="useECRCredentialsForMirrors"
    )
    install_cri_ctl: bool | None = said("Whether crictl is put beside it")
    install_nerd_ctl: bool | None = said("Whether nerdctl is put beside it")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDNS:
    """The DNS server pods ask."""

    provider: str = said("Which server", check=one_of("CoreDNS", "KubeDNS"))
    domain: str = said("The domain it answers for")
    server_ip: str = said("The address pods ask", name="serverIP")
    image: str = said("The image it runs from")
    replicas: int = said("How many run")
    stub_domains: dict[str, list[str]] | None = said("Domains answered by servers of their own")
    upstream_nameservers: list[str] | None = said("Whom it asks for the rest")
    external_core_file: str | None = said("The whole Corefile, in place of ours")
    cache_max_size: int | None = said("How many answers it keeps")
    cache_max_concurrent: int | None = said("How many questions it passes on at once")
    cpu_request: str | None = said("CPU each is sure of")
    memory_request: str | None = said("Memory each is sure of")
    memory_limit: str | None = said("The most memory each may use")
    node_local_dns: dict[str, Any] | None = said("A cache on each node", name="nodeLocalDNS")
    tolerations: list[dict[str, Any]] | None = said("Taints its pods live with")
    affinity: dict[str, Any] | None = said("Where its pods should stand")
    pod_annotations: dict[str, str] | None = said("Annotations of its pods")


@dataclass(frozen=True, slots=True, kw_only=True)
class DNSController:
    """What turns annotations into records."""

    enabled: bool = said("Whether it runs")
    watch_ingress: bool = said("Whether it looks at ingresses too")
    watch_namespace: str | None = said("Only this namespace; all, if unsaid")
    provider: str | None = said(
        "Where its zones are; without one it does not run", check=one_of("aws-route53", "rfc2136")
    )
    zones: list[str] | None = said("Zones it may write to: example.com, example.com/ID, */ID or *; all, if unsaid")
    server: str | None = said("rfc2136: the primary server of the zones, ADDRESS or ADDRESS:PORT")
    key_file: str | None = said("rfc2136: where the key is on masters; it comes from the secret dns-update-key")
    image: str | None = said("The image it runs from")
    kubeconfig: str | None = said("How it reaches the API")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assets:
    """Where images and files come from, for machines that cannot reach the usual places."""

    container_registry: str | None = said("A registry that holds copies of all images")
    container_proxy: str | None = said("A registry that passes requests through")
    file_repository: str | None = said("A server that holds copies of all files")
