"""What is installed on machines besides Kubernetes itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protokube.spec.fields import one_of, spec_field

ROLES = ("Master", "Node", "Bastion", "APIServer")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAsset:
    """A user's file on every machine of some roles; in the manifest directory it becomes a static pod."""

    path: str | None = spec_field("The path of the file")
    content: str = spec_field("The content of the file")
    is_base64: bool | None = spec_field("Whether the content is base64", name="isBase64")
    mode: str | None = spec_field("Its permissions, such as 0440")
    roles: list[str] | None = spec_field("The roles of the machines it is for; all if not set")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A user's systemd unit, or a container run as one."""

    name: str | None = spec_field("The unit's name")
    enabled: bool | None = spec_field("Whether the unit is started")
    disabled: bool | None = spec_field("Whether the hook of this name is removed")
    roles: list[str] | None = spec_field("The roles of the machines it is for; all if not set")
    requires: list[str] | None = spec_field("Units it requires")
    before: list[str] | None = spec_field("Units that start after it")
    manifest: str | None = spec_field("The unit's text")
    use_raw_manifest: bool | None = spec_field("Whether the manifest is the whole unit, not only its service part")
    exec_container: dict[str, Any] | None = spec_field("A container to run instead")


@dataclass(frozen=True, slots=True, kw_only=True)
class Containerd:
    """The container runtime."""

    version: str = spec_field("The version of containerd")
    address: str = spec_field("The socket that kubelet uses")
    root: str | None = spec_field("The directory for images and containers")
    state: str | None = spec_field("The directory for state that a reboot clears")
    log_level: str | None = spec_field("The log level of containerd")
    sandbox_image: str = spec_field("The pause image, which holds a pod's namespaces")
    config_override: str | None = spec_field("The whole configuration file, in place of ours")
    config_additions: dict[str, Any] | None = spec_field("Additional entries of the configuration file")
    registry_mirrors: dict[str, list[str]] | None = spec_field("Mirrors to try first, by registry")
    skip_install: bool | None = spec_field("Do not install it: the machine image has it")
    packages: dict[str, Any] | None = spec_field("Where to download it from, with checksums")
    runc: dict[str, Any] | None = spec_field("Where to download runc from, with checksums")
    selinux_enabled: bool | None = spec_field("Whether containers get SELinux labels")
    nvidia_gpu: dict[str, Any] | None = spec_field("NVIDIA's runtime and driver", name="nvidiaGPU")
    nri: dict[str, Any] | None = spec_field("Plugins of the Node Resource Interface")
    gvisor: dict[str, Any] | None = spec_field("The gVisor runtime")
    use_ecr_credentials_for_mirrors: bool | None = spec_field(
        "AWS: whether the registry's credentials are used for mirrors", name="useECRCredentialsForMirrors"
    )
    install_cri_ctl: bool | None = spec_field("Whether crictl is installed")
    install_nerd_ctl: bool | None = spec_field("Whether nerdctl is installed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDNS:
    """The DNS server for pods."""

    provider: str = spec_field("Which DNS server runs", check=one_of("CoreDNS", "KubeDNS"))
    domain: str = spec_field("The cluster domain it serves")
    server_ip: str = spec_field("The service address of the DNS server", name="serverIP")
    image: str = spec_field("The image it runs from")
    replicas: int = spec_field("Number of replicas")
    stub_domains: dict[str, list[str]] | None = spec_field("Domains that are forwarded to other name servers")
    upstream_nameservers: list[str] | None = spec_field("Name servers for all other names")
    external_core_file: str | None = spec_field("The whole Corefile, in place of ours")
    cache_max_size: int | None = spec_field("Maximum number of cached answers")
    cache_max_concurrent: int | None = spec_field("Maximum number of concurrent upstream queries")
    cpu_request: str | None = spec_field("CPU request of each replica")
    memory_request: str | None = spec_field("Memory request of each replica")
    memory_limit: str | None = spec_field("Memory limit of each replica")
    node_local_dns: dict[str, Any] | None = spec_field("A DNS cache on each node", name="nodeLocalDNS")
    tolerations: list[dict[str, Any]] | None = spec_field("Tolerations of its pods")
    affinity: dict[str, Any] | None = spec_field("Affinity of its pods")
    pod_annotations: dict[str, str] | None = spec_field("Annotations of its pods")


@dataclass(frozen=True, slots=True, kw_only=True)
class DNSController:
    """The dns-controller: publishes DNS records for annotated objects."""

    enabled: bool = spec_field("Whether it runs")
    watch_ingress: bool = spec_field("Whether it also watches ingresses")
    watch_namespace: str | None = spec_field("The namespace it watches; all if not set")
    provider: str | None = spec_field(
        "The DNS provider of its zones; without one it does not run", check=one_of("aws-route53", "rfc2136")
    )
    zones: list[str] | None = spec_field(
        "Zones it may write to: example.com, example.com/ID, */ID or *; all if not set"
    )
    server: str | None = spec_field("rfc2136: the primary server of the zones, ADDRESS or ADDRESS:PORT")
    key_file: str | None = spec_field(
        "rfc2136: path of the update key on masters; its content is the secret dns-update-key"
    )
    image: str | None = spec_field("The image it runs from")
    kubeconfig: str | None = spec_field("The path of its kubeconfig")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assets:
    """Mirrors of images and files, for machines that cannot reach the public ones."""

    container_registry: str | None = spec_field("A registry that holds copies of all images")
    container_proxy: str | None = spec_field("A pull-through registry proxy")
    file_repository: str | None = spec_field("A server that holds copies of all files")
