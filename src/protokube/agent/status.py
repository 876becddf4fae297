"""What a round saw and did, as data: read by `status` and `explain`, which need no API for it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from protokube.agent.links import is_linked
from protokube.agent.volume import mounted_volumes, unused
from protokube.agent.world import Home, Turn
from protokube.members.identity import Identity
from protokube.members.phases import Phase, phase_of
from protokube.members.start import Join, Refuse, Start, Wait
from protokube.providers.volumes import Volume


def snapshot(turn: Turn, *, number: int, took: float, pause: float) -> dict[str, Any]:
    world = turn.world
    me = world.me
    live = world.presence.live()
    mounted = mounted_volumes.mounted(world)
    return {
        "machine": {"id": me.id, "name": me.name, "address": me.address, "zone": me.zone, "group": me.group},
        "cluster": turn.wanted.cluster,
        "round": number,
        "at": world.clock.now(),
        "took": round(took, 4),
        "nextWithin": round(pause, 2),
        "report": turn.report.to_tree(),
        "volumes": None if turn.volumes is None else [_volume(turn, each, mounted) for each in turn.volumes],
        "members": [_home(turn, each) for each in turn.homes],
        "jobs": [{"job": type(job).__name__, "seconds": round(took, 1)} for job, took in world.disks.running()],
        "live": None if live is None else dict(sorted(live.items())),
        "elected": world.presence.elected(),
        "serving": me.id in (world.presence.serving() or ()) if turn.wanted.components else None,
    }


def _volume(turn: Turn, volume: Volume, mounted: Collection[str]) -> dict[str, Any]:
    return {
        "id": volume.id,
        "member": f"{volume.etcd_cluster}/{volume.member}",
        "attachedTo": volume.attached_to,
        "epoch": volume.epoch,
        "mark": volume.mark,
        "phase": _phase(turn, volume, mounted=volume.id in mounted).value,
    }


def _phase(turn: Turn, volume: Volume, *, mounted: bool) -> Phase:
    home = next((each for each in turn.homes if each.volume == volume.id), None)
    not_used = volume.id in unused.volumes(turn)
    superseded = not_used and volume.id in unused.superseded(turn)
    return phase_of(
        volume.attached_to,
        turn.world.me.id,
        mounted=mounted,
        linked=home is not None and is_linked(turn, home),
        decision=turn.decisions.get(volume.id),
        superseded=superseded,
        spare=not_used and not superseded,
    )


def _home(turn: Turn, home: Home) -> dict[str, Any]:
    match turn.decisions.get(home.volume):
        case Start(fresh=True):
            doing = "founding"
        case Start():
            doing = "going on"
        case Join():
            doing = "joining"
        case Wait(why):
            doing = f"waiting: {why}"
        case Refuse(why):
            doing = f"refused: {why}"
        case _:
            doing = "undecided"
    identity = home.identity if isinstance(home.identity, Identity) else None
    return {
        "member": home.name,
        "name": home.member.name,
        "dnsName": home.member.dns_name,
        "volume": home.volume,
        "epoch": identity.epoch if identity else None,
        "holder": identity.holder if identity else None,
        "generation": identity.generation if identity else None,
        "data": home.data.value,
        "doing": doing,
        "linked": is_linked(turn, home),
        "older": asdict(older) if (older := turn.older.get(home.volume)) is not None else None,
    }
