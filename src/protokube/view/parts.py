"""Put the parts of a view together: volumes with the phases that their holders report, members with their volumes.

A member is found through its volume, and a volume's phase is the word of the machine that holds it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from protokube.config.pki import member_name
from protokube.launch.machine import MasterConfig
from protokube.members.generation import Generation
from protokube.members.phases import OWN, Phase, from_text, phase_of
from protokube.members.unused import TaggedVolume, spares
from protokube.view.values import AgentView, DiskView, MemberView

Row = Mapping[str, Any]
"""A volume as the local cloud lists it, by the names of `providers.volumes.Volume`."""
SETTLED = "settled"
"""The state of a volume without an unfinished change, by the values of `providers.volumes.AttachmentState`."""
NOT_IN_USE = (Phase.SUPERSEDED.value, Phase.UNUSED.value)


def disk_views(
    volumes: Iterable[Row],
    agents: Sequence[AgentView],
    records: Mapping[str, Generation | None] = MappingProxyType({}),
) -> tuple[DiskView, ...]:
    """Volumes in the order of their members; the phase is the holder's own word, and of a free one the record's."""
    reported = {agent.host: agent.phases for agent in agents}
    volumes = tuple(volumes)
    superseded = {volume for record in records.values() if record is not None for volume in record.superseded}
    tagged = (TaggedVolume(x["id"], (x["etcd_cluster"], x["member"]), x["epoch"], x["mark"]) for x in volumes)
    unused = spares(tagged, superseded)
    found = [
        DiskView(
            id=each["id"],
            member=f"{each['etcd_cluster']}/{each['member']}",
            size=each["size"],
            attached_to=each["attached_to"],
            mark=each["mark"],
            epoch=each["epoch"],
            last_holder=each["last_holder"],
            phase=phase(reported.get(each["attached_to"], {}).get(each["id"], ""))
            if each["attached_to"]
            else phase_of(
                None, "", superseded=each["id"] in superseded, spare=each["id"] in unused, between=bool(_between(each))
            ).value,
            state=_between(each),
        )
        for each in volumes
    ]
    return tuple(sorted(found, key=lambda disk: (not disk.member.startswith("main/"), disk.member, disk.id)))


def _between(volume: Row) -> str:
    state = volume.get("state", "")
    return "" if state == SETTLED else str(state)


def phase(text: str) -> str:
    """What a holder says of its own volume; a word from before it held it says nothing."""
    return text if from_text(text) in OWN else ""


def expect(
    wanted: MasterConfig | None, disks: Sequence[DiskView], cluster: str, ports: Mapping[tuple[str, int], int]
) -> list[MemberView]:
    """The fixed set of members, and where each is now; before masters have a configuration, by volume tags."""
    if wanted is None:
        return [_placed(each, member_name(*each.split("/")), cluster, disks) for each in _tagged(disks)]
    found = []
    for etcd in wanted.etcd:
        for configured in etcd.members:
            port = ports.get((configured.dns_name, etcd.pod.client_port))
            member = _placed(f"{etcd.key}/{configured.short}", configured.name, cluster, disks)
            found.append(replace(member, dns_name=configured.dns_name, url=f"https://127.0.0.1:{port}" if port else ""))
    return found


def _tagged(disks: Sequence[DiskView]) -> list[str]:
    return list(dict.fromkeys(each.member for each in disks))


def _placed(member: str, name: str, cluster: str, disks: Sequence[DiskView]) -> MemberView:
    current = (each for each in disks if each.member == member and each.phase not in NOT_IN_USE)
    volumes = sorted(current, key=lambda disk: disk.attached_to is None)
    volume = volumes[0] if volumes else None
    return MemberView(
        member=member,
        name=name,
        dns_name=f"{name}.internal.{cluster}",
        volume=volume.id if volume else None,
        host=volume.attached_to if volume else None,
    )
