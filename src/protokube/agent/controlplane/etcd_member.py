"""One manifest for each member that we hold: written on the volume, linked when everything it needs is there.

Names before processes: peers check who calls them against DNS, so the link is made only after the authoritative side
answered with our address. What etcd is told (found, join, go on) was decided from the volume; here it is carried out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from protokube.agent import links
from protokube.agent.cache import StepCache
from protokube.agent.controlplane import keys
from protokube.agent.etcd import generations, quorum
from protokube.agent.volume import mounted_volumes, stopped
from protokube.agent.wanted import EtcdCluster
from protokube.agent.world import Home, Turn
from protokube.errors import TryLater
from protokube.host.files import link_atomic, write_atomic
from protokube.manifests import etcd as manifest
from protokube.members.identity import Identity
from protokube.members.start import Data, Join, Listed, Refuse, Start, Wait

STEP = "etcd"


@dataclass(slots=True)
class EtcdCache(StepCache):
    voters: dict[str, str] = field(default_factory=dict)
    """By member: the volume on which etcd was seen to be a voter."""


def sync(turn: Turn) -> None:
    for home in turn.homes:
        with turn.reported(STEP, home.name):
            _one(turn, home)
    for etcd in turn.wanted.etcd:
        _close(turn, etcd)


def _one(turn: Turn, home: Home) -> None:
    match turn.decisions.get(home.volume):
        case Start(fresh=fresh):
            serve(turn, home, _founding(turn, home) if fresh else _going_on(home))
            if not fresh:
                _promote(turn, home)
        case Join() as how:
            serve(turn, home, _joining(turn, home, how))
        case None:  # the fence takes it away, or it could not be told this round: what was verified before stays
            return
        case Wait() | Refuse():
            for link in links.pointing_into(turn.world, home.point):
                links.remove(link)
                turn.report.done(STEP, "stopped: nothing may be started on its volume now", home.name)


def serve(turn: Turn, home: Home, settings: str) -> None:
    """Files, manifest, link: in this order, each only if it differs."""
    world, pod = turn.world, home.etcd.pod
    linked = links.is_linked(turn, home)
    if not linked and home.volume not in turn.settled:
        raise TryLater("its volume is not settled yet")
    assert isinstance(home.identity, Identity)
    if not linked and home.member.dns_name not in turn.named:
        raise TryLater(f"{home.member.dns_name} does not answer with our address yet, and peers would turn us away")
    keys.ensure(turn, [f"{home.member.name}-peer", f"{home.member.name}-server"])
    config_file = world.inside(pod.config_file)
    config_file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(config_file, settings.encode(), 0o644)
    text = manifest.pod(
        pod, mounted_volumes.point_of(home.volume), generation=home.identity.generation, epoch=home.identity.epoch
    )
    on_volume = Path(manifest.MANIFESTS) / pod.file_name

    def write() -> bool:
        (home.point / pod.data_dir.lstrip("/")).mkdir(mode=0o700, parents=True, exist_ok=True)
        (home.point / on_volume).parent.mkdir(parents=True, exist_ok=True)
        return write_atomic(home.point / on_volume, text.encode(), 0o644)

    mounted_volumes.on_volume(write, f"writing the manifest on {home.point}", mounted_volumes.PATIENCE * 5)
    links.link_of(turn, home).parent.mkdir(parents=True, exist_ok=True)
    if link_atomic(Path(mounted_volumes.point_of(home.volume)) / on_volume, links.link_of(turn, home)):
        turn.report.done(STEP, f"manifest linked from {home.volume}", home.name)
    if home.data is not Data.PRESENT:
        turn.waiting(STEP, home.name, "the kubelet starts it, and it has no data yet")


def _founding(turn: Turn, home: Home) -> str:
    generation = generations.read(turn, home.etcd.key)
    assert generation is not None
    return manifest.founding(home.member.settings, generation.token)


def _going_on(home: Home) -> str:
    return manifest.going_on(home.member.settings, home.etcd.token)


def _joining(turn: Turn, home: Home, how: Join) -> str:
    """Take the place of the old id: remove, add as a learner, then start with exactly the list that etcd has now."""
    client = turn.world.etcd[home.etcd.key]
    if links.is_linked(turn, home) and how.remove is not None:
        # its old id is in use, perhaps by an etcd that still runs here: it has to stop before anything is removed
        links.remove(links.link_of(turn, home))
        raise TryLater("its data vanished while it ran; it is stopped first")
    if how.remove is not None:
        stopped.require_gone(turn, home, how.remove)
    elif how.move_aside and not links.is_linked(turn, home):
        stopped.require_unused(turn, home)
    if how.move_aside and not links.is_linked(turn, home):
        aside = mounted_volumes.on_volume(
            lambda: mounted_volumes.move_data_aside(home), f"moving old data aside on {home.point}"
        )
        if aside:
            turn.report.done(STEP, f"moved what was left of its data to {aside}", home.name)
    if how.remove is not None:
        client.remove(how.remove)
        turn.report.done(STEP, f"removed the old id {how.remove:x}, whose data is gone", home.name)
    _supersede(turn, home)
    if not any(home.member.peer_url in each.peer_urls for each in client.members()):
        added = client.add_learner(home.member.peer_url)
        turn.report.done(STEP, f"added as learner {added.id:x}", home.name)
    turn.world.memory.of(EtcdCache).voters.pop(home.name, None)
    names = {each.peer_url: each.name for each in home.etcd.members}
    peers = [(names.get(url, each.name), url) for each in client.members() for url in each.peer_urls]
    return manifest.joining(home.member.settings, home.etcd.token, peers)


def _supersede(turn: Turn, home: Home) -> None:
    """The id of the member's founding volume is out of etcd's list: should that disk turn up again, it stays unused."""
    generation = generations.recent(turn, home.etcd.key)
    founder = generation.founders.get(home.member.short, home.volume) if generation else home.volume
    if generation is not None and founder != home.volume and founder not in generation.superseded:
        generations.change(turn, home.etcd.key, lambda known: known.with_superseded(founder, home.member.short))


def _mine(home: Home, listed: Sequence[Listed]) -> Listed | None:
    return next((each for each in listed if home.member.peer_url in each.peer_urls), None)


def _promote(turn: Turn, home: Home) -> None:
    """A learner that runs becomes a voter once it has caught up; asked until etcd says that it is one."""
    voters = turn.world.memory.of(EtcdCache).voters
    if voters.get(home.name) == home.volume:
        return
    client = turn.world.etcd[home.etcd.key]
    me = _mine(home, quorum.members(turn, home.etcd))
    if me is not None and me.learner:
        client.promote(me.id)
        turn.report.done(STEP, f"promoted learner {me.id:x} to a voter", home.name)
    elif me is not None and me.started:
        voters[home.name] = home.volume


def _close(turn: Turn, etcd: EtcdCluster) -> None:
    """Creation ends with the first quorum: from then on nobody may found this cluster again."""
    mine = [home for home in turn.homes if home.etcd.key == etcd.key and home.data is Data.PRESENT]
    if not mine:
        return
    generation = generations.recent(turn, etcd.key)
    if generation is None or not generation.open:
        return
    try:
        quorum.members(turn, etcd)
        generations.change(turn, etcd.key, lambda known: known.closed())
    except TryLater as why:
        turn.waiting(STEP, etcd.key, f"no quorum yet: {why.message}")
    else:
        turn.report.done(STEP, "has a quorum for the first time; its creation is closed", etcd.key)
