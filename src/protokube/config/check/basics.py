"""Checks before any decision: the name, the cloud, zones and the version."""

from __future__ import annotations

import re
from collections.abc import Iterator

from protokube.config.draft import Ledger
from protokube.config.network import REGIONS, region_of, zones_in_names
from protokube.spec import version as versions
from protokube.spec.cluster import CLOUDS
from protokube.spec.parse import GROUPS, Spec

LABEL = re.compile(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
LONGEST_NAME = 200
"""DNS allows 253 characters; the rest is for a prefix such as `etcd-events-NAME.internal.`"""


def is_dns_name(name: str) -> bool:
    return all(LABEL.match(label) for label in name.split("."))


def blocks(path: str) -> bool:
    """Whether a problem at this path prevents all decisions: the cloud, the zones, the groups and their roles."""
    return (
        path == "cloud"
        or path.startswith(("zones", "subnets"))
        or bool(re.fullmatch(rf"{GROUPS}\.[^.]+(\.role)?", path))
    )


def check_basics(spec: Spec, ledger: Ledger) -> bool:
    """Record the problems, and return whether the configuration can be completed despite them."""
    cluster = spec.cluster
    cloud = cluster.get("cloud")
    if cloud is None:
        ledger.problem("cloud", "is not given", f"one of {', '.join(CLOUDS)}", "metadata.name")
    _name(spec.name, str(cloud), ledger)
    _version(spec, ledger)
    subnets = (cluster.get("subnets") or {}).values()
    placed = cluster.get("zones") or any("zone" in each for each in subnets)
    placed = placed or any(each.get("zones") for each in spec.groups.values())
    placed = placed or zones_in_names(str(cloud), cluster)
    if cloud in REGIONS and not placed and cluster.get("zones") is None:
        ledger.problem("zones", "are not given", f"for example zones: {EXAMPLES[cloud]}", "cloud")
    _zones(spec, str(cloud), ledger)
    for field in ("masterInternalName", "masterPublicName", "clusterDNSDomain"):
        if field in cluster and not is_dns_name(cluster[field]):
            ledger.problem(field, f"{cluster[field]!r} is not a DNS name", "lower-case letters, digits and dashes")
    for name, group in spec.groups.items():
        if "role" not in group:
            ledger.problem(f"{GROUPS}.{name}.role", "is not given", "Master or Node", f"{GROUPS}.{name}")
        if not is_dns_name(name):
            hint = "lower-case letters, digits and dashes"
            ledger.problem(f"{GROUPS}.{name}", f"{name!r} is not a DNS name", hint)
    known = (
        cloud in CLOUDS and (placed or cloud not in REGIONS) and all("role" in each for each in spec.groups.values())
    )
    return bool(known) and not any(blocks(each.path) for each in ledger.problems)


EXAMPLES = {"aws": "[us-east-1a, us-east-1b, us-east-1c]", "gce": "[us-central1-a, us-central1-b, us-central1-c]"}


def _name(name: str, cloud: str, ledger: Ledger) -> None:
    path = "metadata.name"
    if not is_dns_name(name):
        hint = "labels of at most 63 lower-case letters, digits and dashes, separated by dots"
        ledger.problem(path, f"{name!r} is not a DNS name", hint)
    elif len(name) > LONGEST_NAME:
        ledger.problem(
            path, f"{len(name)} characters are too long for the DNS names of members", f"{LONGEST_NAME} at most"
        )
    elif "." not in name and cloud in REGIONS:
        hint = f"for example {name}.example.com, or {name}.k8s.local without a DNS zone"
        ledger.problem(path, f"{name!r} has no domain for DNS records", hint)


def _version(spec: Spec, ledger: Ledger) -> None:
    text = spec.cluster.get("kubernetesVersion")
    if text is None:
        return
    path, version = "kubernetesVersion", versions.parse(text)
    if version is None:
        ledger.problem(path, f"{text!r} is not a version", f"for example {versions.DEFAULT}")
    elif version < versions.OLDEST and spec.translated:
        message = f"{text} is older than {versions.OLDEST.short}, the oldest supported: completed in the form of that"
        ledger.warn(path, message, "no machine will be launched from this; raise the version first")
    elif version < versions.OLDEST:
        hint = f"{versions.OLDEST.short} to {versions.NEWEST.short} are supported"
        ledger.problem(path, f"{text} is older than {versions.OLDEST.short}, the oldest supported", hint)
    elif version.major > versions.NEWEST.major:
        ledger.problem(path, f"there is no Kubernetes {version.short}", f"for example {versions.DEFAULT}")
    elif version.series > versions.NEWEST:
        newest = versions.NEWEST.short
        ledger.warn(
            path, f"{version.short} is newer than the newest known version: flags and files are those of {newest}"
        )


def _zones(spec: Spec, cloud: str, ledger: Ledger) -> None:
    zones: list[str] = spec.cluster.get("zones") or []
    if not zones and "zones" in spec.cluster:
        ledger.problem("zones", "is an empty list", "name at least one zone")
    for index, zone in enumerate(zones):
        if zone in zones[:index]:
            ledger.problem(f"zones[{index}]", f"{zone!r} is named twice")
    named = dict(_named(spec))
    for path, zone in named.items():
        if cloud in REGIONS and region_of(cloud, zone) in (None, zone):
            ledger.problem(path, f"{zone!r} is not a zone of {cloud}", f"for example {EXAMPLES[cloud]}")
        elif not LABEL.match(zone):
            ledger.problem(path, f"{zone!r} is not a name for a zone", "lower-case letters, digits and dashes")
    regions = {region for zone in named.values() if (region := region_of(cloud, zone))}
    if len(regions) > 1:
        hint = "a cluster is in one region; create one cluster for each"
        ledger.problem("zones", f"are in several regions: {', '.join(sorted(regions))}", hint, *named)


def _named(spec: Spec) -> Iterator[tuple[str, str]]:
    """The zones of the cluster, by path: given, or else those of its subnets and groups."""
    if "zones" in spec.cluster:
        yield from ((f"zones[{index}]", zone) for index, zone in enumerate(spec.cluster["zones"]))
        return
    for name, subnet in (spec.cluster.get("subnets") or {}).items():
        if "zone" in subnet:
            yield f"subnets.{name}.zone", subnet["zone"]
    for name, group in spec.groups.items():
        yield from ((f"{GROUPS}.{name}.zones[{index}]", zone) for index, zone in enumerate(group.get("zones") or []))
