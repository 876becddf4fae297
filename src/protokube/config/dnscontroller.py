"""Whether the dns-controller runs, and its settings: it needs a DNS provider with zones that it may write to.

AWS and the local cloud have a provider. Elsewhere the user gives the server of the zones, and a key in the state store.
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
"""By provider: the extras of our own package that it needs."""
LOCAL_SERVER = "10.77.0.1"
"""The address at which the embedded DNS server serves the hosts of the local cloud."""
KEY_SECRET = "dns-update-key"  # noqa: S105 (the name of a secret)
"""The secret in the state store that is the key for DNS updates."""
NAME = "dns-controller"
HOME = own_folder(NAME)
IMAGE = f"protokube/{NAME}:{__version__}"


def runs(cluster: Mapping[str, Any]) -> bool:
    """Whether masters run it, according to a complete configuration."""
    settings = cluster["dnsController"]
    return bool(settings["enabled"] and settings.get("provider"))


def complete_dns_controller(cluster: Draft, cloud: str) -> None:
    controller = cluster.under("dnsController")
    wished = controller.get("enabled") is True or (cloud == "gce" and not controller.has("enabled"))
    provider = _provider(cluster, controller, cloud)
    if provider:
        controller.decide("enabled", True, "there is a DNS provider", controller.at("provider"))
    else:
        because, of = _why_not(cluster, cloud)
        controller.decide("enabled", False, because, *of)
        if wished:
            message, hint = f"it does not run: {because}", "set dnsController.server to a server that accepts updates"
            controller.ledger.warn(controller.at("enabled"), message, hint)
    controller.decide("watchIngress", False, "only on request")
    if not provider or not controller.get("enabled"):
        return
    _zones(cluster, controller, provider)
    if provider == RFC2136:
        _server(controller, cloud)
    name, of = _image(cluster)
    controller.decide("image", name, "the image comes with protokube", *of)
    controller.decide("kubeconfig", f"{HOME}/kubeconfig", "the path that nodeup writes")


def _provider(cluster: Draft, controller: Draft, cloud: str) -> str | None:
    if controller.get("server"):
        controller.decide("provider", RFC2136, "a server is named", controller.at("server"))
    elif cloud == "local":
        controller.decide(
            "provider", RFC2136, "the embedded DNS server accepts updates by rfc2136", cluster.at("cloud")
        )
    elif cloud == "aws" and not _hidden(cluster):
        controller.decide("provider", ROUTE53, "the DNS service of the cloud", cluster.at("cloud"))
    found: str | None = controller.get("provider")
    return found


def _hidden(cluster: Draft) -> bool:
    return bool(cluster.get("topology")["dns"]["type"] == "None")


def _why_not(cluster: Draft, cloud: str) -> tuple[str, tuple[str, ...]]:
    if _hidden(cluster):
        return "there is no zone to write to", (cluster.at("topology.dns.type"),)
    if cloud == "gce":
        return "Cloud DNS is not built yet", (cluster.at("cloud"),)
    return "no DNS provider is given", (cluster.at("cloud"),)


def _zones(cluster: Draft, controller: Draft, provider: str) -> None:
    """Zones may be left out for Route 53, which can list them; an RFC 2136 server cannot."""
    if zone := cluster.get("dnsZone"):
        rule = zone if "." in zone or provider == RFC2136 else f"*/{zone}"
        controller.decide("zones", [rule], "the zone of the cluster", cluster.at("dnsZone"))
    if provider == RFC2136 and not controller.get("zones"):
        path = controller.at("zones")
        controller.ledger.problem(path, "an rfc2136 server cannot list its zones", "set dnsZone, or zones here")


def _server(controller: Draft, cloud: str) -> None:
    if cloud == "local":
        controller.decide("server", LOCAL_SERVER, "the embedded DNS server")
    elif not controller.get("server"):
        path = controller.at("server")
        controller.ledger.problem(path, "rfc2136 needs the primary server of the zones", "server: ADDRESS")
    controller.decide("keyFile", f"{HOME}/update.key", f"the secret {KEY_SECRET} of the state store is written there")


def _image(cluster: Draft) -> tuple[str, tuple[str, ...]]:
    """Our image is not in Kubernetes' registry; if the user has a registry for all images, it is expected there."""
    host, of = registry(cluster)
    return (IMAGE, ()) if host == REGISTRY else (f"{host}/{IMAGE}", of)
