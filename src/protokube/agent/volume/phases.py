"""Take the disks: claim, find the device, prove it, format it if that is proven right, mount it.

Each volume goes its own way and stops where it has to wait; none holds up another. Disk work runs in children: a
round starts it, a later one collects it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from protokube.agent import links
from protokube.agent.cache import Confirmed, StepCache, is_recent
from protokube.agent.etcd import generations
from protokube.agent.volume import diskfaults, inventory, mounted_volumes, ownership, unused, verified
from protokube.agent.volume.claims import plan_claims
from protokube.agent.volume.formatgate import FormatIt, MarkIt, MountIt, next_step, wrong_device
from protokube.agent.world import Turn
from protokube.errors import Refused, TryLater
from protokube.host import Block, Content, Device, Done, Failed, Format, MountVolume, Probe, Probed, Unwritable
from protokube.members.generation import FORMATTING
from protokube.members.identity import Identity
from protokube.members.start import Kind, Refuse, Wait
from protokube.providers.volumes import Volume, VolumeTaken

STEP = "volumes"
PROBE_AGAIN = 30.0
"""Seconds until a device that was refused is read once more."""


@dataclass(slots=True)
class VolumesCache(StepCache):
    devices: dict[str, Device] = field(default_factory=dict)
    """By volume: where the provider showed it; asked for again before a format. What is there is probed each time."""
    refused: dict[str, Confirmed[Refuse]] = field(default_factory=dict)
    """By volume: why its content was refused when it was last read."""


def sync(turn: Turn) -> None:
    inventory.complete(turn)
    if turn.volumes is not None:
        if any(each.attached_to is None for each in turn.volumes):
            with turn.reported(STEP, ""):
                claim(turn)
        turn.kept = _kept(turn)
        for volume in turn.volumes or ():
            if volume.attached_to == turn.world.me.id:
                _one(turn, volume)
            else:
                turn.world.memory.of(VolumesCache).devices.pop(volume.id, None)
    turn.homes = mounted_volumes.observe(turn)
    ownership.sync(turn)


def claim(turn: Turn) -> None:
    """Reach for free volumes; after attaching, believe only what a fresh list says."""
    world, report = turn.world, turn.report
    chosen = plan_claims(
        turn.volumes or (),
        world.me,
        turn.wanted,
        zonal=world.volumes.zonal,
        leaving={*turn.leaving.values(), *_mounted_unlisted(turn)},
        unused=unused.volumes(turn),
    )
    taken: dict[str, Volume] = {}
    for volume in chosen.attach:
        if volume.etcd_cluster in taken:
            continue
        name = f"{volume.etcd_cluster}/{volume.member}"
        try:
            if held := _held_after_all(turn, volume.etcd_cluster):
                turn.waiting(STEP, name, f"the list is old: {held} is attached here, and is not shown so")
                continue
            if why_not := diskfaults.why_leave_to_others(turn, volume):
                turn.waiting(STEP, name, why_not)
                continue
            world.volumes.attach(volume.id)
        except VolumeTaken as lost:  # every master races for it; losing is normal
            report.done(STEP, f"went to another master ({lost.message})", name)
        except TryLater as why:
            turn.waiting(STEP, name, f"cannot be attached: {why.message}")
            break  # it may have gone through: reaching for a second one could give us two
        except Refused as why:
            report.needs_a_person(STEP, why, name)
        else:
            taken[volume.etcd_cluster] = volume
    if taken:
        _look_again(turn, taken.values())


def _look_again(turn: Turn, taken: Iterable[Volume]) -> None:
    inventory.refresh(turn)
    for volume in taken:
        name, listed = f"{volume.etcd_cluster}/{volume.member}", turn.volume(volume.id)
        if listed is not None and listed.attached_to == turn.world.me.id:
            turn.report.done(STEP, f"attached {volume.id}", name)
        else:  # an old list: asked again after a pause, not at once
            turn.waiting(STEP, name, f"{volume.id} was attached, and is not listed as ours yet")


def _mounted_unlisted(turn: Turn) -> Iterator[str]:
    """Etcd clusters of volumes that are mounted here and not listed as ours; "" where the disk does not say it.

    The fence has its reasons to keep them for now. Nothing of that etcd cluster is taken meanwhile, nor are they
    attached again: what is mounted is the device of an earlier attachment.
    """
    for volume, mount in mounted_volumes.mounted(turn.world).items():
        listed = turn.volume(volume)
        if listed is None or listed.attached_to != turn.world.me.id:
            said = listed or mounted_volumes.identity_or_why_not(mount.point)
            yield said.etcd_cluster if isinstance(said, Volume | Identity) else ""


def _held_after_all(turn: Turn, key: str) -> str:
    """A volume of this etcd cluster that is ours although the list does not say so; "" if there is none.

    Asked for by id before anything is attached, where lists may be old: a machine with two members of one etcd cluster
    would take both along when it fails.
    """
    if turn.world.volumes.consistent:
        return ""
    for each in turn.volumes or ():
        if each.etcd_cluster == key:
            found = turn.world.volumes.look_up(each.id)
            if found is not None and found.attached_to == turn.world.me.id:
                return each.id
    return ""


def _one(turn: Turn, volume: Volume) -> None:
    name = f"{volume.etcd_cluster}/{volume.member}"
    if volume.id in turn.leaving:
        return  # reported where it is left
    try:
        if why := unused.volumes(turn).get(volume.id):
            unused.give_away(turn, volume, why)
        elif beside := ownership.beside_another(turn, volume.id, volume.etcd_cluster):
            raise Refused(beside.why, hint=beside.hint)
        else:
            prepare(turn, volume, name)
    except TryLater as why:
        turn.waiting(STEP, name, why.message + diskfaults.story(turn, volume))
    except Refused as why:
        turn.report.needs_a_person(STEP, why, name)


def _kept(turn: Turn) -> dict[str, str]:
    """By etcd cluster, the volume of it that is served here; tags that come back can leave a machine with two.

    The one that serves goes on, whatever the record says; else the recorded one; else the one that is mounted.
    """
    world, mounted = turn.world, mounted_volumes.mounted(turn.world)
    not_used = unused.volumes(turn)

    def rank(volume: Volume) -> tuple[bool, bool, bool, bool, int, str]:
        mount = mounted.get(volume.id)
        serves = mount is not None and bool(links.pointing_into(world, mount.point))
        generation = generations.recent(turn, volume.etcd_cluster)
        recorded = generation is not None and generation.home_of(volume.member) == volume.id
        return (serves, volume.id not in not_used, recorded, mount is not None, volume.epoch, volume.id)

    ours = [each for each in turn.volumes or () if each.attached_to == world.me.id]
    if len({each.etcd_cluster for each in ours}) == len(ours):
        return {each.etcd_cluster: each.id for each in ours}  # as in nearly every round
    return {each.etcd_cluster: each.id for each in sorted(ours, key=rank)}


def prepare(turn: Turn, volume: Volume, name: str) -> None:
    """Bring a volume that we hold to being mounted; returns when it is, raises what it waits for otherwise."""
    world = turn.world
    device = _device(turn, volume)
    block = world.disks.find(device)
    if block is None:
        if volume.id not in mounted_volumes.mounted(world) and diskfaults.story(turn, volume):
            diskfaults.failed_to_mount(turn, volume, f"{device.path} is not there")
            diskfaults.before_mounting(turn, volume, name)
        raise TryLater(f"{volume.id} is attached, its device {device.path} is not there yet")
    if wrong := wrong_device(volume, device, block):
        raise Refused(wrong.why, hint=wrong.hint)
    point = world.inside(mounted_volumes.point_of(volume.id))
    mounts = world.disks.mounts()
    here = [each for each in mounts if each.number == block.number]
    at_point = [each for each in mounts if each.point == point]
    if any(each.number != block.number for each in at_point):
        raise Refused(f"something else than {volume.id} is mounted at {point}", hint=f"see `findmnt {point}`")
    if here and not at_point:
        raise Refused(f"{volume.id} is mounted at {here[0].point}, not at {point}", hint="unmount it there")
    if not here:
        verified.forget(world, volume.id)  # before anything is mounted: what comes next is checked
        diskfaults.before_mounting(turn, volume, name)
        _bring_up(turn, volume, block, name)
    else:
        diskfaults.mounted(turn, volume)


def _device(turn: Turn, volume: Volume) -> Device:
    """Where the provider shows the volume; asked once for each time it is attached, since that does not change."""
    devices = turn.world.memory.of(VolumesCache).devices
    if volume.id not in devices:
        devices[volume.id] = turn.world.volumes.device(volume.id)
    return devices[volume.id]


def _bring_up(turn: Turn, volume: Volume, block: Block, name: str) -> None:
    world = turn.world
    refused = world.memory.of(VolumesCache).refused.get(volume.id)
    if refused is not None and is_recent(refused.when, world.clock.monotonic(), PROBE_AGAIN):
        raise _still(turn, volume, refused.value)
    jobs = (job for job, _ in world.disks.running() if isinstance(job, Format | MountVolume))
    working = next((job for job in jobs if job.block == block), None)
    if working is not None:
        _work(turn, working, volume, name)
        return
    probed = world.disks.run(Probe(block=block))
    if probed is None:  # while it is read once more, it stays as it was: nobody who looks just now must think it better
        raise TryLater(f"{volume.id} is being read") if refused is None else _still(turn, volume, refused.value)
    if isinstance(probed, Failed):
        diskfaults.failed_to_mount(turn, volume, probed.why)
        raise TryLater(f"{volume.id} could not be read: {probed.why}")
    assert isinstance(probed, Probed)
    _act(turn, volume, block, probed, name)


def _still(turn: Turn, volume: Volume, refused: Refuse) -> Refused:
    turn.decisions[volume.id] = refused
    return Refused(refused.why, hint=refused.hint)


def _act(turn: Turn, volume: Volume, block: Block, probed: Probed, name: str) -> None:
    """Carry out what the proof allows."""
    world, refused = turn.world, turn.world.memory.of(VolumesCache).refused
    generation = None if probed.content is Content.EXT4 else generations.read(turn, volume.etcd_cluster)
    decision = ownership.supposing_blank(turn, volume) if probed.content in (Content.BLANK, Content.DIRTY) else Wait("")
    step = next_step(volume, probed, generation, decision)
    if not isinstance(step, Refuse):
        refused.pop(volume.id, None)
    match step:
        case MarkIt():
            marked = mark(turn, volume, f"{FORMATTING}:{world.new_nonce()}")
            _act(turn, marked, block, probed, name)
        case FormatIt(uuid, again):
            if (device := world.volumes.device(volume.id)) != _device(turn, volume):
                world.memory.of(VolumesCache).devices.pop(volume.id)
                raise TryLater(f"{volume.id} is shown at {device.path} now; it is read there first")
            _work(turn, Format(block=block, uuid=uuid, again=again), volume, name)
        case MountIt():
            point = world.inside(mounted_volumes.point_of(volume.id))
            _work(turn, MountVolume(block=block, point=point), volume, name)
        case Wait(why):
            raise TryLater(why)
        case Refuse(why) if probed.content is Content.UNREADABLE and volume.epoch:
            diskfaults.failed_to_mount(turn, volume, probed.told)
            raise TryLater(f"{why}; it is tried again")  # for how long, and where: diskfaults
        case Refuse() as refuse:
            raise _refused(turn, volume, refuse)


def _refused(turn: Turn, volume: Volume, refuse: Refuse) -> Refused:
    """It is looked at again after a while; until then the reason stays."""
    world = turn.world
    world.memory.of(VolumesCache).refused[volume.id] = Confirmed(refuse, world.clock.monotonic())
    return _still(turn, volume, refuse)


def mark(turn: Turn, volume: Volume, text: str) -> Volume:
    """Write a mark and read it back; TryLater unless the provider now says exactly this."""
    turn.world.volumes.write_mark(volume.id, text)
    inventory.refresh(turn)
    seen = turn.volume(volume.id)
    if seen is None or seen.mark != text or seen.attached_to != turn.world.me.id:
        raise TryLater(f"the provider does not show the mark {text!r} on {volume.id} yet")
    return seen


def _work(turn: Turn, job: Format | MountVolume, volume: Volume, name: str) -> None:
    result = turn.world.disks.run(job)
    doing = "formatted" if isinstance(job, Format) else "mounted"
    match result:
        case None:
            raise TryLater(f"{volume.id} is being {doing}")
        case Failed(why, damaged=True):
            hint = "mend it by hand with e2fsck, on a copy first; or delete it: the other members then make it anew"
            raise _refused(turn, volume, Refuse(f"{volume.id} is damaged: {why}", hint, Kind.BROKEN))
        case Failed(why, overdue):
            diskfaults.failed_to_mount(turn, volume, why)
            raise TryLater(f"{volume.id} could not be {doing}: {why}" + ("; it hangs" if overdue else ""))
        case Done():
            turn.report.done(STEP, f"{doing} {volume.id}", name)
            if isinstance(job, Format):  # what it made is checked when it is mounted: by fsck, and by its UUID
                point = turn.world.inside(mounted_volumes.point_of(volume.id))
                _work(turn, MountVolume(block=job.block, point=point), volume, name)
        case Probed() | Unwritable():  # pragma: no cover
            raise AssertionError("that was not asked for")
