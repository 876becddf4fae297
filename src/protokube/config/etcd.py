"""etcd clusters: their members in the zones of the masters, their ports and versions."""

from __future__ import annotations

from protokube.config.draft import Draft
from protokube.config.etcd_versions import etcd_for
from protokube.config.images import image
from protokube.spec.parse import GROUPS
from protokube.spec.version import Version, parse

FIRST_CLIENT, FIRST_PEER, FIRST_METRICS = 4001, 2380, 2390
"""The ports of `main`; `events` and further clusters have the following numbers in turn."""
GIBIBYTE = 2**30
OF_KUBERNETES = ("main", "events")
"""Etcd clusters that API servers use."""
VOLUME_TYPES = {"aws": "gp3", "gce": "pd-ssd"}


def short_names(groups: list[str], region: str = "") -> dict[str, str]:
    """Names of members by group: `master-us-east-1a` gives `a`, whether it is the only group or one of several."""
    bare = {name: name.removeprefix("master-").removeprefix("control-plane-") for name in groups}
    bare = {name: text.removeprefix(region).lstrip("-") or text for name, text in bare.items()}
    first, last = min(bare.values(), default=""), max(bare.values(), default="")
    alike = 0 if len(bare) < 2 else next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    shorter = {name: text[alike:].lstrip("-") for name, text in bare.items()}
    unique = len(set(shorter.values())) == len(bare)
    return shorter if alike is not None and unique and all(shorter.values()) else bare


def complete_etcd(cluster: Draft, groups: Draft, cloud: str, version: Version, name: str) -> None:
    """`main` and `events` (on one machine only `main`), a member in each group of masters."""
    masters = [(key, each) for key, each in groups.each(GROUPS) if each.get("role") == "Master"]
    names = short_names([key for key, _ in masters], cluster.get("region") or "")
    wanted: dict[str, dict[str, object]] = {"main": {}} if cloud == "local" else {"main": {}, "events": {}}
    because = (
        "one etcd cluster is enough on one machine" if cloud == "local" else "events may be lost: a separate cluster"
    )
    cluster.decide("etcdClusters", wanted, because, cluster.at("cloud"))
    slots = {key: slot for slot, key in enumerate(dict.fromkeys(["main", "events", *cluster.get("etcdClusters")]))}
    for key, etcd in cluster.each("etcdClusters"):
        members = {names[group]: {"instanceGroup": group} for group, _ in masters}
        etcd.decide("members", members, "one in each group of masters", *(each.path for _, each in masters))
        _settings(etcd, cluster, key, slots[key], version, name)
        for short, member in etcd.each("members"):
            _member(member, short, dict(masters), names, cloud, cluster)


def _settings(etcd: Draft, cluster: Draft, key: str, slot: int, version: Version, name: str) -> None:
    at_version = cluster.at("kubernetesVersion")
    etcd.decide("version", etcd_for(version), f"goes with Kubernetes {version.short}", at_version)
    tag = f"{etcd.get('version')}-0" if (parse(etcd.get("version")) or version) >= (3, 4) else etcd.get("version")
    etcd_image, of = image(cluster, "etcd", tag)
    etcd.decide("image", etcd_image, "the image of its version", etcd.at("version"), *of)
    etcd.decide("clientPort", FIRST_CLIENT + slot, f"the port of {key}, as in the original")
    etcd.decide("peerPort", FIRST_PEER + slot, f"the port of {key}, as in the original")
    etcd.decide("metricsPort", FIRST_METRICS + slot, "on 127.0.0.1 only, for the probes of the pod")
    store = "etcd" if key == "main" else f"etcd-{key}"
    etcd.decide("token", f"etcd-cluster-token-{store}-{name}", "unique to this cluster", "metadata.name")
    directory = "/var/etcd/data" if key == "main" else f"/var/etcd/data-{key}"
    etcd.decide("dataDir", directory, "where the original keeps it")
    quota, because = (
        8 * GIBIBYTE,
        "the maximum that etcd recommends; its default of 2 GiB is too small for large clusters",
    )
    if cluster.get("cloud") == "local":
        quota, because = GIBIBYTE // 2, "half of its disk"
    etcd.decide("quotaBackendBytes", quota, because)
    etcd.decide("cpuRequest", "200m" if key == "main" else "100m", "what it needs when idle")
    etcd.decide("memoryRequest", "100Mi", "what it needs when idle")
    etcd.decide("replaceLostVolumes", True, "the cluster recovers from a lost disk without a person")
    used = key in OF_KUBERNETES
    because = "Kubernetes does not read revisions that are minutes old" if used else "not used by Kubernetes"
    maintenance = etcd.under("maintenance")
    maintenance.decide("compact", used, because)
    maintenance.decide("rejoinRemoved", True, "the cluster recovers from an accidental removal without a person")
    maintenance.decide("rejoinRemovedAfter", "5m", "time to finish a repair that began with the removal")
    backups = etcd.under("backups")
    base, of = in_store(cluster)
    backups.decide("backupStore", f"{base}backups/etcd/{key}", "next to the configuration", *of)
    backups.decide("interval", "15m", "at most 15 minutes of writes are lost with all disks")
    backups.decide("retentionDays", 90, "three months of history")


def in_store(cluster: Draft) -> tuple[str, tuple[str, ...]]:
    """The prefix of a path in the state store, and the field it comes from; "" if no store is given."""
    base = cluster.get("configBase")
    return (f"{base.rstrip('/')}/", (cluster.at("configBase"),)) if base else ("", ())


def _member(
    member: Draft, short: str, masters: dict[str, Draft], names: dict[str, str], cloud: str, cluster: Draft
) -> None:
    group = next((key for key, name in names.items() if name == short), "")
    if group:
        member.decide("instanceGroup", group, "the group that its name is taken from", f"{GROUPS}.{group}")
    holder = masters.get(member.get("instanceGroup") or "")
    zones = holder.get("zones") if holder else []
    if zones and holder:
        member.decide("zone", zones[0], "the zone of its group", holder.at("zones"))
    if cloud in VOLUME_TYPES:
        kind = VOLUME_TYPES[cloud]
        member.decide("volumeType", kind, "SSD: etcd waits for every write", cluster.at("cloud"))
    size = 1 if cloud == "local" else 20
    member.decide("volumeSize", size, "ample for etcd's data and its log", cluster.at("cloud"))
    encrypted = cloud in VOLUME_TYPES
    because = "the cloud encrypts at no cost" if encrypted else f"{cloud} cannot encrypt disks"
    member.decide("encryptedVolume", encrypted, because, cluster.at("cloud"))
