"""etcd members: an odd number, each in a group of masters and a zone; a warning if losing a zone loses the quorum."""

from __future__ import annotations

from collections import Counter

from protokube.config.check.basics import LABEL
from protokube.config.draft import Draft
from protokube.config.groups import machines
from protokube.config.render.etcd_file import milliseconds
from protokube.nearest import near
from protokube.spec.parse import GROUPS

LONGEST_ELECTION = 50_000


def check_members(cluster: Draft, root: Draft) -> None:
    if not cluster.get("etcdClusters") or "main" not in cluster.get("etcdClusters"):
        hint = "the API server keeps everything in it; `events` is optional"
        cluster.ledger.problem("etcdClusters", "there is no cluster `main`", hint)
    groups = dict(root.each(GROUPS))
    for key, etcd in cluster.each("etcdClusters"):
        if not LABEL.match(key):
            hint = "lower-case letters, digits, dashes"
            cluster.ledger.problem(etcd.path, f"{key!r} cannot be a part of a DNS name", hint)
        _count(key, etcd)
        _times(etcd)
        for short, member in etcd.each("members"):
            _member(short, member, groups, cluster)
        _spread(etcd, groups)
        if key == "main":
            _idle(etcd, groups)
        _zones(key, etcd)
    _ports(cluster)


def _count(key: str, etcd: Draft) -> None:
    count = len(etcd.get("members"))
    if count == 0:
        etcd.ledger.problem(etcd.at("members"), f"etcd {key} has no member", "1, 3 or 5", etcd.path)
    elif count % 2 == 0:
        message = f"{count} members tolerate no more failures than {count - 1}, and one more machine can fail"
        etcd.ledger.problem(etcd.at("members"), message, f"use {count - 1} or {count + 1}", etcd.path, "masters")


def _times(etcd: Draft) -> None:
    """etcd does not start with timeouts outside of these bounds."""
    beat = milliseconds(etcd.get("heartbeatInterval") or "100ms")
    wait = milliseconds(etcd.get("leaderElectionTimeout") or "1s")
    path, fields = etcd.at("leaderElectionTimeout"), (etcd.at("heartbeatInterval"), etcd.path)
    if beat <= 0 or wait < 5 * beat:
        message = f"{wait:g}ms is less than five times heartbeatInterval, {beat:g}ms"
        etcd.ledger.problem(path, message, "ten times is usual", *fields)
    elif wait > LONGEST_ELECTION:
        etcd.ledger.problem(path, f"{wait:g}ms is more than {LONGEST_ELECTION}ms, the maximum of etcd", "", *fields)


def _member(short: str, member: Draft, groups: dict[str, Draft], cluster: Draft) -> None:
    ledger = member.ledger
    if not LABEL.match(short):
        ledger.problem(member.path, f"{short!r} cannot be a part of a DNS name", "lower-case letters, digits, dashes")
    name = member.get("instanceGroup")
    if name is None:
        hint = f"one of {', '.join(key for key, each in groups.items() if each.get('role') == 'Master')}"
        ledger.problem(member.at("instanceGroup"), "is not given", hint, member.path)
        return
    if name not in groups:
        hint = near(name, groups) or f"known are {', '.join(groups)}"
        ledger.problem(member.at("instanceGroup"), f"there is no group {name!r}", hint)
        return
    group = groups[name]
    if group.get("role") != "Master":
        role = group.get("role")
        ledger.problem(member.at("instanceGroup"), f"{name!r} is a group of role {role}", "members run on masters")
        return
    zone = member.get("zone")
    if zone is None:
        ledger.problem(member.at("zone"), f"group {name!r} has no zone", "give the group a zone", group.path)
    elif zone not in cluster.get("zones"):
        hint = near(zone, cluster.get("zones")) or f"known are {', '.join(cluster.get('zones'))}"
        ledger.problem(member.at("zone"), f"{zone!r} is not a zone of this cluster", hint, member.path)
    elif zone not in group.get("zones"):
        hint = f"no machine of the group could attach the disk; {name} is in {', '.join(group.get('zones'))}"
        ledger.problem(member.at("zone"), f"group {name!r} has no machine in {zone!r}", hint, member.path)


def _spread(etcd: Draft, groups: dict[str, Draft]) -> None:
    """A machine holds one member of each etcd cluster, so a group needs as many machines as members."""
    wanted = Counter(member.get("instanceGroup") for _, member in etcd.each("members"))
    for name, count in wanted.items():
        most = groups[name].get("maxSize") if name in groups else count
        if most == 0:
            message = f"{name!r} is scaled to 0, so no machine holds its member"
            etcd.ledger.warn(etcd.at("members"), message, "", f"{GROUPS}.{name}.maxSize", etcd.path)
        elif count > most:
            message = f"{count} members need a machine of {name!r}, which has {most} at most"
            hint = (
                "a machine holds one member of each etcd cluster; give each member a group, or the group more machines"
            )
            etcd.ledger.problem(etcd.at("members"), message, hint, etcd.path, f"{GROUPS}.{name}")


def _idle(etcd: Draft, groups: dict[str, Draft]) -> None:
    """By default a group gets one member: further machines would hold none. Whoever lists the members may want that."""
    origin = etcd.ledger.origin(etcd.at("members"))
    if origin is not None and origin.kind == "user":
        return
    for group in groups.values():
        if group.get("role") == "Master" and len(group.get("zones")) == 1 and (count := machines(group)) > 1:
            message = f"{count} machines, and one member of etcd main: the others would have no volume to hold"
            hint = "make groups of one machine each, or list the members under `etcdClusters`"
            etcd.ledger.problem(group.at("minSize"), message, hint, group.path)


def _zones(key: str, etcd: Draft) -> None:
    """Two zones cannot survive the loss of either: one of them has the majority."""
    zones = Counter(member.get("zone") for _, member in etcd.each("members") if member.get("zone"))
    total = sum(zones.values())
    if len(zones) < 2 or total < 3:
        return
    zone, most = max(zones.items(), key=lambda item: (item[1], item[0]))
    if total - most <= total // 2:
        message = f"losing zone {zone} takes {most} of {total} members of etcd {key}, and with them the quorum"
        hint = "spread the members over three zones or more"
        etcd.ledger.warn(etcd.at("members"), message, hint, "zones", etcd.path)


def _ports(cluster: Draft) -> None:
    """All etcd clusters share a machine with the API server."""
    taken: dict[int, str] = {cluster.get("kubeAPIServer").get("securePort", 443): "kubeAPIServer.securePort"}
    for _, etcd in cluster.each("etcdClusters"):
        for name in ("clientPort", "peerPort", "metricsPort"):
            port = etcd.get(name)
            if port in taken:
                etcd.ledger.problem(etcd.at(name), f"{port} is also the port of {taken[port]}", "", taken[port])
            taken[port] = etcd.at(name)
