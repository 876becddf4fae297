"""Render the etcd member list, and the contents of a volume to adopt. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from protokube.cli.render.table import several, size, table
from protokube.members import alarms
from protokube.members.adopt import Adopt, AdoptDecision, Adopted, Layout, data_folder, manifest_file, read_manifest
from protokube.members.alarms import Alarm
from protokube.members.start_values import Refuse
from protokube.members.survey.listing import list_tree
from protokube.view.cluster import ClusterView
from protokube.view.values import MemberView

HEADER = ("ID", "NAME", "STATUS", "ROLE", "REVISION", "HOST", "VOLUME", "PEER URLS", "CLIENT URLS")


def members_tree(view: ClusterView) -> dict[str, list[dict[str, Any]]]:
    """By etcd cluster: each member as etcd lists it, with its host and volume."""
    return {
        key: [
            entry | _place(_find(view, entry), entry) | _seen(view, _find(view, entry))
            for entry in list_tree(view.listed(key))
        ]
        for key in dict.fromkeys(each.key for each in view.members)
    }


def _seen(view: ClusterView, member: MemberView | None) -> dict[str, Any]:
    """Where this was read, and how old it is: seconds since a master published it."""
    if not view.source:
        return {}
    return {"source": view.source, "age": round(member.age, 2) if member and member.asked_by else None}


def _find(view: ClusterView, entry: Mapping[str, Any]) -> MemberView | None:
    """Match by peer URL: a member that was just added has no name until it starts."""
    hosts = {urlsplit(url).hostname for url in entry["peerURLs"]}
    return next((each for each in view.members if each.dns_name in hosts), None)


def _place(member: MemberView | None, entry: Mapping[str, Any]) -> dict[str, Any]:
    started = bool(entry["clientURLs"])
    if member is None:
        gone = {"healthy": False, "alarms": [], "leader": False, "revision": 0, "host": None, "volume": None}
        return {"started": started, **gone}
    return {
        "started": started,
        "healthy": member.healthy,
        "alarms": [each.name for each in member.alarms],
        "leader": member.leader,
        "revision": member.revision,
        "host": member.host,
        "volume": member.volume,
    }


def render_members(view: ClusterView) -> list[str]:
    lines: list[str] = []
    for key, members in members_tree(view).items():
        rows = [
            (
                each["id"],
                each["name"],
                _status(each),
                "learner" if each["learner"] else "leader" if each["leader"] else "voter",
                str(each["revision"] or ""),
                each["host"] or "",
                each["volume"] or "",
                ", ".join(each["peerURLs"]),
                ", ".join(each["clientURLs"]),
            )
            for each in members
        ]
        lines += [*([""] if lines else []), f"{key}:" if members else f"{key}: {_nothing(view, key)}"]
        lines += table(HEADER, rows)
        raised = dict.fromkeys(each.why for each in view.members if each.key == key and each.alarms)
        lines += [f"alarm: {each}" for each in raised]
    return lines


def _nothing(view: ClusterView, key: str) -> str:
    asked = any(each.asked for each in view.members if each.key == key)
    return "no member answers behind a quorum" if asked else "nobody has asked its members lately"


def _status(row: Mapping[str, Any]) -> str:
    if not row["started"]:
        return "unstarted"
    return alarms.state(Alarm(0, name) for name in row["alarms"]) or ("healthy" if row["healthy"] else "not healthy")


def render_found(volume: str, etcd_cluster: str, layout: Layout, decision: AdoptDecision) -> list[str]:
    """What is on a volume, and whether it can be adopted."""
    folder = data_folder(etcd_cluster)
    text = layout.manifests.get(manifest_file(etcd_cluster))
    manifest = read_manifest(text) if text is not None else None
    lines = [f"on {volume}:"]
    lines.append(f"  data      var/etcd/{folder}, {several(layout.logs.get(folder, 0), 'write-ahead log')}")
    lines.append(f"  database  {size(layout.database_size) or 'none'}")
    if manifest is None:
        lines.append("  manifest  none that can be read")
    else:
        lines.append(f"  manifest  {manifest.name or 'without a name'}, token {manifest.token or 'not set'}")
        lines += [f"  peer      {each}" for each in manifest.peers]
    match decision:
        case Adopted(identity):
            lines.append(f"it is adopted already: epoch {identity.epoch}, generation {identity.generation}")
        case Refuse(why, hint):
            lines += [f"it cannot be adopted: {why}", *([f"  hint: {hint}"] if hint else [])]
        case Adopt(identity=identity, warnings=warnings):
            lines += [f"warning: {each}" for each in warnings]
            lines.append(f"it can become {identity.etcd_cluster}/{identity.member} of {identity.cluster}")
    return lines


def found_tree(volume: str, layout: Layout, decision: AdoptDecision, done: list[str]) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "volume": volume,
        "logs": layout.logs,
        "databaseSize": layout.database_size,
        "manifests": sorted(layout.manifests),
        "done": done,
    }
    match decision:
        case Adopted():
            return tree | {"adopted": True}
        case Refuse(why, hint):
            return tree | {"adopted": False, "refused": why, "hint": hint}
        case Adopt(warnings=warnings):
            return tree | {"adopted": bool(done), "warnings": list(warnings)}
