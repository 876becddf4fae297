"""etcd clusters: which there are, their members in the zones of the masters, their ports and versions."""

from __future__ import annotations

from protokube.config.draft import Draft
from protokube.config.etcd_versions import etcd_for
from protokube.config.images import image
from protokube.spec.parse import GROUPS
from protokube.spec.version import Version, parse

FIRST_CLIENT, FIRST_PEER, FIRST_METRICS = 4001, 2380, 2390
"""`main` has these, `events` the next ones, any further cluster the next but one."""
GIBIBYTE = 2**30
OF_KUBERNETES = ("main", "events")
"""Etcd clusters that API servers use."""
VOLUME_TYPES = {"aws": "gp3", "gce": "pd-ssd"}


def short_names(groups: list[str], region: str = "") -> dict[str, str]:
    """Names of members by the groups that hold them: `master-us-east-1a` is `a`, alone or of three."""
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
    because = "one store on one machine" if cloud == "local" else "events have a store of their own: they may be lost"
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
    etcd.decide("token", f"etcd-cluster-token-{store}-{name}", "no other cluster has it", "metadata.name")
    directory = "/var/etcd/data" if key == "main" else f"/var/etcd/data-{key}"
    etcd.decide("dataDir", directory, "where the original keeps it")
    quota, because = 8 * GIBIBYTE, "the most etcd advises; its own default of 2 GiB stops clusters"
    if cluster.get("cloud") == "local":
        quota, because = GIBIBYTE // 2, "half of its disk"
    etcd.decide("quotaBackendBytes", quota, because)
    etcd.decide("cpuRequest", "200m" if key == "main" else "100m", "what it needs when idle")
    etcd.decide("memoryRequest", "100Mi", "what it needs when idle")
    etcd.decide("replaceLostVolumes", True, "a lost disk heals without a person")
    used = key in OF_KUBERNETES
    because = "Kubernetes reads no revision that is minutes old" if used else "Kubernetes is not its user"
    maintenance = etcd.under("maintenance")
    maintenance.decide("compact", used, because)
    maintenance.decide("rejoinRemoved", True, "a removal that was not meant heals without a person")
    maintenance.decide("rejoinRemovedAfter", "5m", "time to finish what a removal may be part of")
    backups = etcd.under("backups")
    base, of = in_store(cluster)
    backups.decide("backupStore", f"{base}backups/etcd/{key}", "beside the configuration", *of)
    backups.decide("interval", "15m", "little is lost when everything is lost")
    backups.decide("retentionDays", 90, "a season of history")


def in_store(cluster: Draft) -> tuple[str, tuple[str, ...]]:
    """What stands before a path of the state store: nothing, until a store is named."""
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
        member.decide("zone", zones[0], "where its group stands", holder.at("zones"))
    if cloud in VOLUME_TYPES:
        kind = VOLUME_TYPES[cloud]
        member.decide("volumeType", kind, "solid state: etcd waits for every write", cluster.at("cloud"))
    size = 1 if cloud == "local" else 20
    member.decide("volumeSize", size, "ample for etcd's data and its log", cluster.at("cloud"))
    encrypted = cloud in VOLUME_TYPES
    because = "the cloud does it for nothing" if encrypted else f"{cloud} cannot"
    member.decide("encryptedVolume", encrypted, because, cluster.at("cloud"))
