"""Names without a DNS zone: each master writes its own hosts file, from which machine holds which volume.

The provider knows the holders, so every master computes the same records, without gossip and seed nodes. A block that
somebody removed is restored in the next round, since the file itself is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from protokube.agent.cache import StepCache
from protokube.agent.etcd import generations
from protokube.agent.round import Round
from protokube.members.generation import is_untouched
from protokube.providers.volumes import Volume
from protokube.records import Change
from protokube.records.names import address_type, make_record, normalise

STEP = "hosts"
TTL = 5


@dataclass(slots=True)
class HostsCache(StepCache):
    addresses: dict[str, str] = field(default_factory=dict)
    """By machine id, as the provider last listed them."""


def sync(round_: Round) -> None:
    edges = round_.edges
    if edges.dns is None or edges.zone_mode:
        return
    if round_.volumes is not None:
        desired = _desired(round_, round_.volumes)
        observed = {record.key: record for record in edges.dns.read(sorted(desired))}
        wanted = [make_record(name, address_type(address), [address], TTL) for name, address in sorted(desired.items())]
        changes = [
            Change(before=observed.get(record.key), after=record, why="the holder of its volume")
            for record in wanted
            if record.key not in observed or observed[record.key].values != record.values
        ]
        if changes:
            edges.dns.apply(changes)
            for change in changes:
                round_.report.done(STEP, str(change))
    ours = [disk.member.dns_name for disk in round_.mounted if disk.volume in round_.settled]
    found = {record.name for record in edges.dns.read(ours) if edges.me.address in record.values}
    round_.named |= {name for name in ours if normalise(name) in found}


def _desired(round_: Round, volumes: Sequence[Volume]) -> dict[str, str]:
    """Addresses by name. Where a member has several volumes, the one in use that was recorded last has the name."""
    addresses = _addresses(round_)
    names = {(etcd.key, each.short): each.dns_name for etcd in round_.wanted.etcd for each in etcd.members}
    desired = {
        names[volume.etcd_cluster, volume.member]: addresses[volume.attached_to]
        for volume in sorted(volumes, key=lambda each: (not is_untouched(each.mark), _is_recorded(round_, each)))
        if volume.attached_to and volume.attached_to in addresses and (volume.etcd_cluster, volume.member) in names
    }
    live = [address for address in (round_.edges.presence.live() or {}).values() if address]
    return desired | ({round_.wanted.api_internal_name: min(live)} if live else {})


def _is_recorded(round_: Round, volume: Volume) -> bool:
    """Whether it is its member's current volume; a replaced one is not."""
    generation = generations.recent(round_, volume.etcd_cluster)
    if generation is None:
        return False
    mounted = generation.founders | generation.replacements
    return mounted.get(volume.member) == volume.id


def _addresses(round_: Round) -> dict[str, str]:
    """Machine addresses by id; listed again only while an unknown machine holds a volume."""
    edges = round_.edges
    holders = {each.attached_to for each in round_.volumes or () if each.attached_to}
    cache = edges.cache.of(HostsCache)
    if not holders <= cache.addresses.keys():
        cache.addresses = {each.id: each.address for each in edges.machines.list_machines()}
    return cache.addresses
