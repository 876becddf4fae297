"""Where the dns-controller runs, and what it is told: only where somebody says which zones there are to write to.

Each cloud has its own answer; who has none is asked for two: the server of the zones, and a key in the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from protokube import __version__
from protokube.config.draft import Draft
from protokube.config.images import REGISTRY, registry
from protokube.config.places import own_folder

ROUTE53, RFC2136 = "aws-route53", "rfc2136"
EXTRAS = {ROUTE53: ("dns", "route53"), RFC2136: ("dns",)}
"""By provider: of our own extras, those that it takes."""
LOCAL_SERVER = "10.77.0.1"
"""Where the embedded DNS server answers the hosts of the local cloud."""
KEY_SECRET = "dns-update-key"  # noqa: S105 (the name of a secret)
"""The secret of the store that is the key for updates."""
NAME = "dns-controller"
HOME = own_folder(NAME)
IMAGE = f"protokube/{NAME}:{__version__}"


def runs(cluster: Mapping[str, Any]) -> bool:
    """Whether masters run it, by a complete configuration."""
    told = cluster["dnsController"]
    return bool(told["enabled"] and told.get("provider"))


def complete_dns_controller(cluster: Draft, cloud: str) -> None:
    controller = cluster.under("dnsController")
    wished = controller.get("enabled") is True or (cloud == "gce" and not controller.has("enabled"))
    provider = _provider(cluster, controller, cloud)
    if provider:
        controller.decide("enabled", True, "annotations become records", controller.at("provider"))
    else:
        because, of = _why_not(cluster, cloud)
        controller.decide("enabled", False, because, *of)
        if wished:
            told, hint = f"it does not run: {because}", "dnsController.server names a server that takes updates"
            controller.ledger.warn(controller.at("enabled"), told, hint)
    controller.decide("watchIngress", False, "only when asked for")
    if not provider or not controller.get("enabled"):
        return
    _zones(cluster, controller, provider)
    if provider == RFC2136:
        _server(controller, cloud)
    name, of = _image(cluster)
    controller.decide("image", name, "it comes with protokube", *of)
    controller.decide("kubeconfig", f"{HOME}/kubeconfig", "where nodeup puts it")


def _provider(cluster: Draft, controller: Draft, cloud: str) -> str | None:
    if controller.get("server"):
        controller.decide("provider", RFC2136, "a server is named", controller.at("server"))
    elif cloud == "local":
        controller.decide("provider", RFC2136, "as the embedded DNS server takes updates", cluster.at("cloud"))
    elif cloud == "aws" and not _hidden(cluster):
        controller.decide("provider", ROUTE53, "the DNS of the cloud", cluster.at("cloud"))
    found: str | None = controller.get("provider")
    return found


def _hidden(cluster: Draft) -> bool:
    return bool(cluster.get("topology")["dns"]["type"] == "None")


def _why_not(cluster: Draft, cloud: str) -> tuple[str, tuple[str, ...]]:
    if _hidden(cluster):
        return "there is no zone to write to", (cluster.at("topology.dns.type"),)
    if cloud == "gce":
        return "Cloud DNS is not built yet", (cluster.at("cloud"),)
    return "nobody said which server has the zones", (cluster.at("cloud"),)


def _zones(cluster: Draft, controller: Draft, provider: str) -> None:
    """Without a word, Route 53 is asked which zones there are; a server of the user's cannot be asked."""
    if zone := cluster.get("dnsZone"):
        rule = zone if "." in zone or provider == RFC2136 else f"*/{zone}"
        controller.decide("zones", [rule], "the zone of the cluster", cluster.at("dnsZone"))
    if provider == RFC2136 and not controller.get("zones"):
        path = controller.at("zones")
        controller.ledger.problem(path, "a DNS server cannot be asked which zones it has", "say dnsZone, or zones here")


def _server(controller: Draft, cloud: str) -> None:
    if cloud == "local":
        controller.decide("server", LOCAL_SERVER, "the embedded DNS server")
    elif not controller.get("server"):
        path = controller.at("server")
        controller.ledger.problem(path, "rfc2136 needs the primary server of the zones", "server: ADDRESS")
    controller.decide("keyFile", f"{HOME}/update.key", f"the secret {KEY_SECRET} of the store is written there")


def _image(cluster: Draft) -> tuple[str, tuple[str, ...]]:
    """Ours lies in no registry of Kubernetes'; where the user has one for everything, it is there too."""
    host, of = registry(cluster)
    return (IMAGE, ()) if host == REGISTRY else (f"{host}/{IMAGE}", of)
