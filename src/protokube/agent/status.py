"""The status of a round as data: `status` and `explain` read it, without the Kubernetes API."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from protokube.agent.links import is_linked
from protokube.agent.names.api_names import ApiCache
from protokube.agent.round import MountedVolume, Round
from protokube.agent.volume import mounted_volumes, unused
from protokube.members.identity import Identity
from protokube.members.phases import Phase, phase_of
from protokube.members.start_values import Join, Refuse, Start, Wait
from protokube.providers.volumes import Volume


def snapshot(round_: Round, *, number: int, took: float, pause: float) -> dict[str, Any]:
    edges = round_.edges
    me = edges.me
    read = edges.presence.read_at()  # before the list: a beat in between may only make the list the newer one
    live = edges.presence.live()
    mounted = mounted_volumes.mounted(edges)
    return {
        "machine": {
            "id": me.id,
            "name": me.name,
            "address": me.address,
            "external": me.external,
            "zone": me.zone,
            "group": me.group,
        },
        "cluster": round_.wanted.cluster,
        "revision": round_.wanted.revision or None,
        "round": number,
        "at": edges.clock.now(),
        "took": round(took, 4),
        "nextWithin": round(pause, 2),
        "report": round_.report.to_tree(),
        "volumes": None if round_.volumes is None else [_volume(round_, each, mounted) for each in round_.volumes],
        "members": [_mounted_volume(round_, each) for each in round_.mounted],
        "jobs": [{"job": type(job).__name__, "seconds": round(took, 1)} for job, took in edges.disks.running()],
        "live": None if live is None else dict(sorted(live.items())),
        "leasesRead": None if read is None else {"cluster": f"{read.cluster_id:x}", "revision": read.revision},
        "names": names(round_),
        "zone": edges.dns is not None and edges.zone_mode,
        "watched": {etcd.key: _watched(round_, etcd.key) for etcd in round_.wanted.etcd},
        "elected": edges.presence.elected(),
        "serving": me.id in (edges.presence.serving() or ()) if round_.wanted.components else None,
    }


def names(round_: Round) -> dict[str, list[str]]:
    """Addresses of the names that this master knows without asking: of its own members, and, if elected, of the API."""
    found = {name: [round_.edges.me.address] for name in round_.named}
    api = {name: list(addresses) for name, addresses in round_.edges.cache.of(ApiCache).names.items() if addresses}
    return dict(sorted((found | api).items()))


def _watched(round_: Round, key: str) -> dict[str, Any] | None:
    """Whether the own member answered lately, and its alarms; None where nothing watches it."""
    space = round_.edges.space
    if space is None:
        return None
    seen = space.sight(key)
    alarms = sorted({each.name for each in seen.alarms}) if seen else []
    return {"answers": seen is not None, "leader": bool(seen and seen.own.leader), "alarms": alarms}


def _volume(round_: Round, volume: Volume, mounted: Collection[str]) -> dict[str, Any]:
    return {
        "id": volume.id,
        "member": f"{volume.etcd_cluster}/{volume.member}",
        "attachedTo": volume.attached_to,
        "state": volume.state.value,
        "size": volume.size,
        "lastHolder": volume.last_holder,
        "epoch": volume.epoch,
        "mark": volume.mark,
        "phase": _phase(round_, volume, mounted=volume.id in mounted).value,
    }


def _phase(round_: Round, volume: Volume, *, mounted: bool) -> Phase:
    disk = next((each for each in round_.mounted if each.volume == volume.id), None)
    not_used = volume.id in unused.volumes(round_)
    superseded = not_used and volume.id in unused.superseded(round_)
    return phase_of(
        volume.attached_to,
        round_.edges.me.id,
        mounted=mounted,
        linked=disk is not None and is_linked(round_, disk),
        decision=round_.decisions.get(volume.id),
        superseded=superseded,
        spare=not_used and not superseded,
        between=bool(volume.between),
    )


def _mounted_volume(round_: Round, disk: MountedVolume) -> dict[str, Any]:
    match round_.decisions.get(disk.volume):
        case Start(fresh=True):
            doing, why = "founding", ""
        case Start():
            doing, why = "going on", ""
        case Join():
            doing, why = "joining", ""
        case Wait(why):
            doing = "waiting"
        case Refuse(why):
            doing = "refused"
        case _:
            doing, why = "undecided", ""
    identity = disk.identity if isinstance(disk.identity, Identity) else None
    return {
        "member": disk.name,
        "name": disk.member.name,
        "dnsName": disk.member.dns_name,
        "volume": disk.volume,
        "epoch": identity.epoch if identity else None,
        "holder": identity.holder if identity else None,
        "generation": identity.generation if identity else None,
        "data": disk.data.value,
        "doing": doing,
        "why": why,
        "linked": is_linked(round_, disk),
        "older": asdict(older) if (older := round_.older.get(disk.volume)) is not None else None,
    }
