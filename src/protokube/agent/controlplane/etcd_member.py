"""One manifest for each member that we hold: written to the volume, and linked once everything it needs is there.

DNS comes before the process: peers check a caller's address against DNS, so the link is made only after the
authoritative server answers with our address. How etcd starts (new cluster, existing cluster, existing data) was
decided from the volume; this step carries it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from protokube.agent import links
from protokube.agent.cache import StepCache
from protokube.agent.controlplane import keys, manifest_files
from protokube.agent.etcd import generations, quorum
from protokube.agent.round import MountedVolume, Round
from protokube.agent.volume import fatal_messages, mounted_volumes, stopped
from protokube.errors import TryLater
from protokube.host.files import link_atomic, write_atomic
from protokube.launch.machine import EtcdCluster
from protokube.manifests import etcd as manifest
from protokube.members.identity import Identity
from protokube.members.start_values import Data, Join, Listed, Refuse, Start, Wait

STEP = "etcd"


@dataclass(slots=True)
class EtcdCache(StepCache):
    voters: dict[str, str] = field(default_factory=dict)
    """By member: the volume on which etcd was last seen as a voter."""


def sync(round_: Round) -> None:
    for disk in round_.mounted:
        with round_.reported(STEP, disk.name):
            _one(round_, disk)
    for etcd in round_.wanted.etcd:
        _close(round_, etcd)


def _one(round_: Round, disk: MountedVolume) -> None:
    match round_.decisions.get(disk.volume):
        case Start(fresh=fresh):
            serve(round_, disk, _founding(round_, disk) if fresh else _going_on(disk))
            if why := fatal_messages.too_new(round_, disk):
                raise TryLater(f"etcd {disk.etcd.version} does not start with its data, which is newer: {why}")
            if not fresh:
                _promote(round_, disk)
        case Join() as how:
            serve(round_, disk, _joining(round_, disk, how))
        case None:  # the fence unmounts it, or there is no decision this round: a verified member keeps running
            return
        case Wait() | Refuse():
            for link in links.pointing_into(round_.edges, disk.point):
                links.remove(link)
                round_.report.done(STEP, "stopped: nothing may be started on its volume now", disk.name)


def serve(round_: Round, disk: MountedVolume, settings: str) -> None:
    """Write files, manifest and link, in this order, each only if it differs."""
    edges, pod = round_.edges, disk.etcd.pod
    linked = links.is_linked(round_, disk)
    if not linked and disk.volume not in round_.settled:
        raise TryLater("its volume is not settled yet")
    assert isinstance(disk.identity, Identity)
    if not linked and disk.member.dns_name not in round_.named:
        raise TryLater(f"{disk.member.dns_name} does not answer with our address yet, and peers would turn us away")
    keys.ensure(round_, [f"{disk.member.name}-peer", f"{disk.member.name}-server"])
    config_file = edges.inside(pod.config_file)
    config_file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(config_file, settings.encode(), 0o644)
    text = manifest.pod(
        pod,
        mounted_volumes.point_of(disk.volume),
        settings=disk.member.settings,
        generation=disk.identity.generation,
        epoch=disk.identity.epoch,
    )
    on_volume = Path(manifest.MANIFESTS) / pod.file_name

    def write() -> bool:
        (disk.point / pod.data_dir.lstrip("/")).mkdir(mode=0o700, parents=True, exist_ok=True)
        (disk.point / on_volume).parent.mkdir(parents=True, exist_ok=True)
        return manifest_files.write(disk.point / on_volume, text)

    mounted_volumes.on_volume(write, f"writing the manifest on {disk.point}", mounted_volumes.PATIENCE * 5)
    links.link_of(round_, disk).parent.mkdir(parents=True, exist_ok=True)
    if link_atomic(Path(mounted_volumes.point_of(disk.volume)) / on_volume, links.link_of(round_, disk)):
        round_.report.done(STEP, f"manifest linked from {disk.volume}", disk.name)
    if disk.data is not Data.PRESENT:
        round_.waiting(STEP, disk.name, "the kubelet starts it, and it has no data yet")


def _founding(round_: Round, disk: MountedVolume) -> str:
    generation = generations.read(round_, disk.etcd.key)
    assert generation is not None
    return manifest.founding(disk.member.settings, generation.token)


def _going_on(disk: MountedVolume) -> str:
    return manifest.going_on(disk.member.settings, disk.etcd.token)


def _joining(round_: Round, disk: MountedVolume, how: Join) -> str:
    """Replace the old member id: remove it, add a learner, then start with exactly etcd's current member list."""
    client = round_.edges.etcd[disk.etcd.key]
    if links.is_linked(round_, disk) and how.remove is not None:
        # an etcd with the old id may still run here: it must stop before the id is removed
        links.remove(links.link_of(round_, disk))
        raise TryLater("its data vanished while it ran; it is stopped first")
    if how.remove is not None:
        stopped.require_gone(round_, disk, how.remove)
    elif how.move_aside and not links.is_linked(round_, disk):
        stopped.require_unused(round_, disk)
    if how.move_aside and not links.is_linked(round_, disk):
        aside = mounted_volumes.on_volume(
            lambda: mounted_volumes.move_data_aside(disk), f"moving old data aside on {disk.point}"
        )
        if aside:
            round_.report.done(STEP, f"moved what was left of its data to {aside}", disk.name)
    if how.remove is not None:
        client.remove(how.remove)
        round_.report.done(STEP, f"removed the old id {how.remove:x}, whose data is gone", disk.name)
    _supersede(round_, disk)
    if not any(disk.member.peer_url in each.peer_urls for each in client.members()):
        added = client.add_learner(disk.member.peer_url)
        round_.report.done(STEP, f"added as learner {added.id:x}", disk.name)
    round_.edges.cache.of(EtcdCache).voters.pop(disk.name, None)
    names = {each.peer_url: each.name for each in disk.etcd.members}
    peers = [(names.get(url, each.name), url) for each in client.members() for url in each.peer_urls]
    return manifest.joining(disk.member.settings, disk.etcd.token, peers)


def _supersede(round_: Round, disk: MountedVolume) -> None:
    """Record the member's founding volume as superseded: etcd no longer lists its id, so that disk must stay unused."""
    generation = generations.recent(round_, disk.etcd.key)
    founder = generation.founders.get(disk.member.short, disk.volume) if generation else disk.volume
    if generation is not None and founder != disk.volume and founder not in generation.superseded:
        generations.change(round_, disk.etcd.key, lambda known: known.with_superseded(founder, disk.member.short))


def _mine(disk: MountedVolume, listed: Sequence[Listed]) -> Listed | None:
    return next((each for each in listed if disk.member.peer_url in each.peer_urls), None)


def _promote(round_: Round, disk: MountedVolume) -> None:
    """Promote a running learner to a voter; retried each round until etcd lists it as a voter."""
    voters = round_.edges.cache.of(EtcdCache).voters
    if voters.get(disk.name) == disk.volume:
        return
    client = round_.edges.etcd[disk.etcd.key]
    me = _mine(disk, quorum.members(round_, disk.etcd))
    if me is not None and me.learner:
        client.promote(me.id)
        round_.report.done(STEP, f"promoted learner {me.id:x} to a voter", disk.name)
    elif me is not None and me.started:
        voters[disk.name] = disk.volume


def _close(round_: Round, etcd: EtcdCluster) -> None:
    """Close the generation record at the first quorum: from then on no master may bootstrap this cluster again."""
    mine = [disk for disk in round_.mounted if disk.etcd.key == etcd.key and disk.data is Data.PRESENT]
    if not mine:
        return
    generation = generations.recent(round_, etcd.key)
    if generation is None or not generation.open:
        return
    try:
        quorum.members(round_, etcd)
        generations.change(round_, etcd.key, lambda known: known.closed())
    except TryLater as why:
        round_.waiting(STEP, etcd.key, f"no quorum yet: {why.message}")
    else:
        round_.report.done(STEP, "has a quorum for the first time; its creation is closed", etcd.key)
