"""Bring volumes to being mounted: attach (`attaching`), find the device, check it, format it if proven, mount it.

Each volume proceeds on its own; none blocks another. Disk work runs in child processes: a round starts it, a later one
collects it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from protokube.agent import links
from protokube.agent.cache import Confirmed, StepCache, is_recent
from protokube.agent.etcd import generations
from protokube.agent.round import Round
from protokube.agent.volume import attaching, diskfaults, inventory, mounted_volumes, ownership, unused, verified
from protokube.agent.volume.formatgate import FormatIt, MarkIt, MountIt, next_step, wrong_device
from protokube.errors import Refused, TryLater
from protokube.host import Block, Content, Device, Done, Failed, Format, MountVolume, Probe, Probed, Unwritable
from protokube.members.generation import FORMATTING
from protokube.members.start_values import Kind, Refuse, Wait
from protokube.providers.volumes import AttachmentState, Volume

STEP = "volumes"
PROBE_AGAIN = 30.0
"""Seconds until a refused device is probed again."""


@dataclass(slots=True)
class VolumesCache(StepCache):
    devices: dict[str, Device] = field(default_factory=dict)
    """By volume: its device at the provider; read again before a format. The device's content is probed each time."""
    refused: dict[str, Confirmed[Refuse]] = field(default_factory=dict)
    """By volume: why its content was refused at the last probe."""


def sync(round_: Round) -> None:
    inventory.complete(round_)
    if round_.volumes is not None:
        if any(each.attached_to is None or each.between for each in round_.volumes):
            with round_.reported(STEP, ""):
                attaching.claim(round_)
        round_.kept = _kept(round_)
        for volume in round_.volumes or ():
            if volume.attached_to == round_.edges.me.id:
                _one(round_, volume)
            else:
                round_.edges.cache.of(VolumesCache).devices.pop(volume.id, None)
    round_.mounted = mounted_volumes.observe(round_)
    ownership.sync(round_)


def _one(round_: Round, volume: Volume) -> None:
    name = f"{volume.etcd_cluster}/{volume.member}"
    if volume.id in round_.leaving:
        return  # reported by the step that unmounts it
    try:
        _require_settled(round_, volume, name)
        if why := unused.volumes(round_).get(volume.id):
            unused.give_away(round_, volume, why)
        elif second := ownership.refuse_second_volume(round_, volume.id, volume.etcd_cluster):
            raise Refused(second.why, hint=second.hint)
        else:
            prepare(round_, volume, name)
    except TryLater as why:
        round_.waiting(STEP, name, why.message + diskfaults.fault_suffix(round_, volume))
    except Refused as why:
        round_.report.needs_a_person(STEP, why, name)


def _require_settled(round_: Round, volume: Volume, name: str) -> None:
    """TryLater for a volume that is not mounted yet and that the provider detaches or changes: its device may go away.

    A mounted one goes on: until it is detached, no other machine can have it.
    """
    if volume.state not in (AttachmentState.DETACHING, AttachmentState.BUSY):
        return
    between = "being detached from this machine" if volume.state is AttachmentState.DETACHING else "busy"
    if volume.id not in mounted_volumes.mounted(round_.edges):
        raise TryLater(f"{volume.id} is {between}")
    round_.report.warn(STEP, f"{volume.id} is {between} according to its provider; what uses it goes on", name)


def _kept(round_: Round) -> dict[str, str]:
    """By etcd cluster, the one volume that is served here; restored tags can leave a machine with two.

    The one that is served takes precedence, whatever the record names; then the recorded one; then the mounted one.
    """
    edges, mounted = round_.edges, mounted_volumes.mounted(round_.edges)
    not_used = unused.volumes(round_)

    def rank(volume: Volume) -> tuple[bool, bool, bool, bool, int, str]:
        mount = mounted.get(volume.id)
        serves = mount is not None and bool(links.pointing_into(edges, mount.point))
        generation = generations.recent(round_, volume.etcd_cluster)
        recorded = generation is not None and generation.volume_of(volume.member) == volume.id
        return (serves, volume.id not in not_used, recorded, mount is not None, volume.epoch, volume.id)

    ours = [each for each in round_.volumes or () if each.attached_to == edges.me.id]
    if len({each.etcd_cluster for each in ours}) == len(ours):
        return {each.etcd_cluster: each.id for each in ours}  # as in nearly every round
    return {each.etcd_cluster: each.id for each in sorted(ours, key=rank)}


def prepare(round_: Round, volume: Volume, name: str) -> None:
    """Mount a volume that we hold; returns once it is mounted, raises what it waits for otherwise."""
    edges = round_.edges
    device = _device(round_, volume)
    block = edges.disks.find(device)
    if block is None:
        if volume.id not in mounted_volumes.mounted(edges) and diskfaults.fault_suffix(round_, volume):
            diskfaults.failed_to_mount(round_, volume, f"{device.path} is not there")
            diskfaults.before_mounting(round_, volume, name)
        raise TryLater(f"{volume.id} is attached, its device {device.path} is not there yet")
    if wrong := wrong_device(volume, device, block):
        raise Refused(wrong.why, hint=wrong.hint)
    point = edges.inside(mounted_volumes.point_of(volume.id))
    mounts = edges.disks.mounts()
    here = [each for each in mounts if each.number == block.number]
    at_point = [each for each in mounts if each.point == point]
    if any(each.number != block.number for each in at_point):
        raise Refused(f"something else than {volume.id} is mounted at {point}", hint=f"see `findmnt {point}`")
    if here and not at_point:
        raise Refused(f"{volume.id} is mounted at {here[0].point}, not at {point}", hint="unmount it there")
    if not here:
        verified.forget(edges, volume.id)  # before anything is mounted: the new mount must be checked
        diskfaults.before_mounting(round_, volume, name)
        _bring_up(round_, volume, block, name)
    else:
        diskfaults.mounted(round_, volume)


def _device(round_: Round, volume: Volume) -> Device:
    """The volume's device at the provider; read once per attachment, since it does not change."""
    devices = round_.edges.cache.of(VolumesCache).devices
    if volume.id not in devices:
        devices[volume.id] = round_.edges.volumes.device(volume.id)
    return devices[volume.id]


def _bring_up(round_: Round, volume: Volume, block: Block, name: str) -> None:
    edges = round_.edges
    refused = edges.cache.of(VolumesCache).refused.get(volume.id)
    if refused is not None and is_recent(refused.when, edges.clock.monotonic(), PROBE_AGAIN):
        raise _refused_again(round_, volume, refused.value)
    jobs = (job for job, _ in edges.disks.running() if isinstance(job, Format | MountVolume))
    working = next((job for job in jobs if job.block == block), None)
    if working is not None:
        _work(round_, working, volume, name)
        return
    probed = edges.disks.run(Probe(block=block))
    if probed is None:  # while it is probed again, the refusal stays in the status
        raise (
            TryLater(f"{volume.id} is being read") if refused is None else _refused_again(round_, volume, refused.value)
        )
    if isinstance(probed, Failed):
        diskfaults.failed_to_mount(round_, volume, probed.why)
        raise TryLater(f"{volume.id} could not be read: {probed.why}")
    assert isinstance(probed, Probed)
    _act(round_, volume, block, probed, name)


def _refused_again(round_: Round, volume: Volume, refused: Refuse) -> Refused:
    round_.decisions[volume.id] = refused
    return Refused(refused.why, hint=refused.hint)


def _act(round_: Round, volume: Volume, block: Block, probed: Probed, name: str) -> None:
    """Carry out what the proof allows."""
    edges, refused = round_.edges, round_.edges.cache.of(VolumesCache).refused
    generation = None if probed.content is Content.EXT4 else generations.read(round_, volume.etcd_cluster)
    decision = (
        ownership.decide_if_blank(round_, volume) if probed.content in (Content.BLANK, Content.DIRTY) else Wait("")
    )
    step = next_step(volume, probed, generation, decision)
    if not isinstance(step, Refuse):
        refused.pop(volume.id, None)
    match step:
        case MarkIt():
            marked = mark(round_, volume, f"{FORMATTING}:{edges.new_nonce()}")
            _act(round_, marked, block, probed, name)
        case FormatIt(uuid, again):
            if (device := edges.volumes.device(volume.id)) != _device(round_, volume):
                edges.cache.of(VolumesCache).devices.pop(volume.id)
                raise TryLater(f"{volume.id} is shown at {device.path} now; it is read there first")
            _work(round_, Format(block=block, uuid=uuid, again=again), volume, name)
        case MountIt():
            point = edges.inside(mounted_volumes.point_of(volume.id))
            _work(round_, MountVolume(block=block, point=point), volume, name)
        case Wait(why):
            raise TryLater(why)
        case Refuse(why) if probed.content is Content.UNREADABLE and volume.epoch:
            diskfaults.failed_to_mount(round_, volume, probed.description)
            raise TryLater(f"{why}; it is tried again")  # diskfaults limits the attempts
        case Refuse() as refuse:
            raise _refused(round_, volume, refuse)


def _refused(round_: Round, volume: Volume, refuse: Refuse) -> Refused:
    """Cache a refusal until the next probe."""
    edges = round_.edges
    edges.cache.of(VolumesCache).refused[volume.id] = Confirmed(refuse, edges.clock.monotonic())
    return _refused_again(round_, volume, refuse)


def mark(round_: Round, volume: Volume, text: str) -> Volume:
    """Write a mark and read it back; TryLater unless the provider returns exactly this mark."""
    round_.edges.volumes.write_mark(volume.id, text)
    inventory.refresh(round_)
    seen = round_.volume(volume.id)
    if seen is None or seen.mark != text or seen.attached_to != round_.edges.me.id:
        raise TryLater(f"the provider does not show the mark {text!r} on {volume.id} yet")
    _require_settled(round_, seen, f"{seen.etcd_cluster}/{seen.member}")
    return seen


def _work(round_: Round, job: Format | MountVolume, volume: Volume, name: str) -> None:
    result = round_.edges.disks.run(job)
    doing = "formatted" if isinstance(job, Format) else "mounted"
    match result:
        case None:
            raise TryLater(f"{volume.id} is being {doing}")
        case Failed(why, damaged=True):
            hint = "repair it by hand with e2fsck, on a copy first; or delete it: the other members then replace it"
            raise _refused(round_, volume, Refuse(f"{volume.id} is damaged: {why}", hint, Kind.BROKEN))
        case Failed(why, overdue):
            diskfaults.failed_to_mount(round_, volume, why)
            raise TryLater(f"{volume.id} could not be {doing}: {why}" + ("; it hangs" if overdue else ""))
        case Done():
            round_.report.done(STEP, f"{doing} {volume.id}", name)
            if isinstance(job, Format):  # mounting checks the new file system: by fsck, and by its UUID
                point = round_.edges.inside(mounted_volumes.point_of(volume.id))
                _work(round_, MountVolume(block=job.block, point=point), volume, name)
        case Probed() | Unwritable():  # pragma: no cover
            raise AssertionError("unexpected result of a disk job")
