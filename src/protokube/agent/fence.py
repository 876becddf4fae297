"""Do we still hold what we serve? The first step of every round.

A master that slept, or was cut off, may have lost its volume to another one. Whoever takes a volume raises its epoch;
who sees a greater epoch, or sees the volume attached elsewhere, stops: manifest away, etcd gone, unmounted. A provider
that does not answer is no reason to stop: its attachment is the lock, and nobody else can have it.
"""

from __future__ import annotations

from protokube.agent import homes, links, verified
from protokube.agent.world import Turn
from protokube.errors import TryLater
from protokube.host import Failed, Mount, Unmount
from protokube.members.identity import Identity, Unreadable
from protokube.providers.volumes import Volume

STEP = "fence"


def sync(turn: Turn) -> None:
    world = turn.world
    held = homes.mounted(world)
    verified.prune(world, held)
    for link in links.dangling(world, {mount.point for mount in held.values()}):
        links.remove(link)
        turn.report.done(STEP, f"removed {link.name}: its volume is not mounted")
    try:
        turn.list_volumes()
    except TryLater as why:
        kept = f"; serving {', '.join(held)} goes on, since the attachment is the lock" if held else ""
        raise TryLater(f"{why.message}{kept}", saw=why.saw, hint=why.hint) from why
    for volume, mount in held.items():
        identity = _identity(mount)
        checked = verified.is_verified(world, volume, mount, identity)
        if why_leave_it := reason(turn.volume(volume), identity, world.me.id, verified=checked):
            turn.leaving[volume] = identity.etcd_cluster if isinstance(identity, Identity) else ""
            leave(turn, volume, mount, why_leave_it)


def _identity(mount: Mount) -> Identity | Unreadable | None:
    """A disk that does not answer is no reason to keep it."""
    try:
        return homes.read_identity(mount.point)
    except TryLater as why:
        return Unreadable(why.message)


def reason(listed: Volume | None, identity: Identity | Unreadable | None, me: str, *, verified: bool = True) -> str:
    """Why this master must stop serving a volume that it has mounted; empty if it need not.

    A disk that was not checked yet does not serve, and a greater epoch says that it is an older copy of itself. It
    stays mounted: to unmount it would only mount it again, round after round.
    """
    if listed is None:
        return "the provider does not list it any more"
    if listed.attached_to != me:
        return f"it is attached to {listed.attached_to or 'nobody'}"
    seen = listed.epoch_for(identity.generation) if isinstance(identity, Identity) and verified else 0
    if isinstance(identity, Identity) and seen > identity.epoch:
        return f"epoch {seen} was seen, ours is {identity.epoch}"
    return ""


def leave(turn: Turn, volume: str, mount: Mount, why: str) -> None:
    """Stop etcd, unmount; finished only when no process sees the device any more."""
    for link in links.pointing_into(turn.world, mount.point):
        links.remove(link)
        turn.report.done(STEP, f"stopped serving: {why}", volume)
    result = turn.world.disks.run(Unmount(point=mount.point, number=mount.number))
    if result is None:
        turn.waiting(STEP, volume, f"being unmounted, since {why}")
    elif isinstance(result, Failed):
        turn.waiting(STEP, volume, f"cannot be unmounted yet: {result.why}")
    else:
        del turn.leaving[volume]
        verified.forget(turn.world, volume)
        turn.report.done(STEP, f"let go: {why}", volume)
