"""What a complete configuration asks of the place where machines run: its names, address ranges and images. Pure.

`derive` has what a machine is told; this is for the commands and clouds that make machines.
"""

from __future__ import annotations

from dataclasses import dataclass

from protokube.config import dnscontroller
from protokube.config.complete import Config
from protokube.config.typed import typed

CORE_DNS = "CoreDNS"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudConfig:
    """The surroundings of a cluster's machines."""

    kind: str
    """`local`, `aws`, ..."""
    dns_zone: str
    """The zone of the cluster's records; "" without one."""
    pod_ranges: tuple[str, ...]
    """CIDRs, by IP family."""
    service_ranges: tuple[str, ...]
    service_domain: str
    """The DNS domain of Services."""
    network_plugin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The images that static pods and add-ons name, for a cloud that makes them itself."""

    sandbox: str
    """The pause image of containerd; "" with another runtime."""
    etcd: tuple[str, ...]
    control_plane: dict[str, str]
    """By program, such as `kube-apiserver`."""
    proxy: str
    """Of kube-proxy; "" where the network plugin replaces it."""
    core_dns: str
    """"" with another DNS server for pods."""
    dns_controller: str
    """"" where none runs."""
    dns_controller_extras: tuple[str, ...]
    """The extras of our own package in it."""


def cloud_config(config: Config) -> CloudConfig:
    cluster = typed(config).cluster
    return CloudConfig(
        kind=cluster.cloud,
        dns_zone=cluster.dns_zone or "",
        pod_ranges=_ranges(cluster.pod_cidr),
        service_ranges=_ranges(cluster.service_cluster_ip_range),
        service_domain=cluster.cluster_dns_domain,
        network_plugin=cluster.networking.plugin,
    )


def images(config: Config) -> Images:
    cluster = typed(config).cluster
    control_plane = {
        "kube-apiserver": cluster.kube_api_server.image,
        "kube-controller-manager": cluster.kube_controller_manager.image,
        "kube-scheduler": cluster.kube_scheduler.image,
    }
    controller = cluster.dns_controller
    own = controller.image if controller.enabled and controller.provider else None
    return Images(
        sandbox=cluster.containerd.sandbox_image if cluster.containerd else "",
        etcd=tuple(sorted({each.image for each in cluster.etcd_clusters.values()})),
        control_plane={program: image for program, image in control_plane.items() if image},
        proxy=(cluster.kube_proxy.image or "") if cluster.kube_proxy.enabled else "",
        core_dns=cluster.cluster_dns.image if cluster.cluster_dns.provider == CORE_DNS else "",
        dns_controller=own or "",
        dns_controller_extras=dnscontroller.EXTRAS[controller.provider] if own and controller.provider else (),
    )


def _ranges(cidrs: str) -> tuple[str, ...]:
    """One range, or one for each IP family."""
    return tuple(each.strip() for each in cidrs.split(",") if each.strip())
