"""Every add-on of a cluster, in the order they are applied, from its complete configuration."""

from __future__ import annotations

from protokube.addons.cluster_dns import cluster_dns
from protokube.addons.own import Read, own_addons
from protokube.addons.rbac import rbac
from protokube.addons.value import Addon
from protokube.config import dnscontroller
from protokube.config.complete import Config
from protokube.spec import version as versions


def all_addons(config: Config, read: Read) -> tuple[Addon, ...]:
    """`read` returns the text at the URL of a user's manifest."""
    tree = config.cluster
    version = versions.parse(tree["kubernetesVersion"]) or versions.DEFAULT
    dns = cluster_dns(tree["clusterDNS"], version)
    return (
        rbac(dns_controller=dnscontroller.runs(tree)),
        *((dns,) if dns else ()),
        *own_addons(tree.get("addons") or (), read),
    )
