"""`protokube explain record` in a local cloud with Kubernetes, which knows the addresses of its own API and DNS."""

from __future__ import annotations

from protokube.cli.dns.explain import explain_name
from protokube.config.dnscontroller import KEY_SECRET
from protokube.errors import TryLater
from protokube.local.base import client_files
from protokube.local.base.paths import Paths
from protokube.providers import catalog
from protokube.providers.clients.local import LocalClient
from protokube.providers.dns.keyfile import read_key
from protokube.store import layout
from protokube.view.cluster import ClusterView

LOOPBACK = "127.0.0.1"


def is_of_agents(view: ClusterView, name: str) -> bool:
    """Whether the agents manage the name: then their status explains it best, and no API is needed."""
    theirs = {each.dns_name for each in view.members} | set(view.api_names)
    return name.removesuffix(".").lower() in theirs | {each.partition(".")[0] for each in theirs}


def explain_by_objects(
    paths: Paths, view: ClusterView, name: str, *, namespace: str, ingresses: bool, owner: str | None, ttl: int,
    output: str,
) -> bool:  # fmt: skip
    """Explain the name from the objects that ask for it; return whether that was possible. It is not without
    Kubernetes, nor for a name of the agents, nor for a name with records while the API does not answer."""
    kubeconfig, key = client_files.folder(paths) / "kubeconfig", paths.store / layout.secret(paths.cluster, KEY_SECRET)
    if not (view.daemon and view.daemon.alive and kubeconfig.is_file() and key.is_file()) or is_of_agents(view, name):
        return False
    try:
        about = LocalClient(paths.admin_socket).call("about")
        zones, port = list(about["zones"]), int(about["dns_port"])
        access = catalog.ZoneAccess(zones=zones, server=(LOOPBACK, port), key=read_key(key), read_only=True)
        whole = f"{name}.{zones[0]}" if zones and "." not in name else name
        explain_name(
            whole, catalog.zones("rfc2136", access), zones, kubeconfig=kubeconfig, context=None, namespace=namespace,
            ingresses=ingresses, owner=owner, ttl=ttl, output=output,
        )  # fmt: skip
    except TryLater:
        if any(record.name == name.removesuffix(".").lower() for record in view.records):
            return False  # the API does not answer; what the cloud sees is better than nothing
        raise
    return True
