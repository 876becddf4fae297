"""Do we still hold what we serve? The first step of every round.

A master that was suspended or partitioned may have lost its volume to another one. Every mount raises the epoch of a
volume; a holder that sees a greater epoch, or sees the volume attached elsewhere, removes the manifest, waits until
etcd has stopped, and unmounts. The same if etcd's log proves that the disk is an older copy; that disk is then mounted
and checked again.

Stopping needs positive evidence. A provider that does not answer, or a list that lacks the volume, is none: the
attachment is the lock, and no other machine can hold it.
"""

from __future__ import annotations

from protokube.agent import links
from protokube.agent.round import Round
from protokube.agent.volume import fatal_messages, inventory, leaving, mounted_volumes, verified
from protokube.agent.volume.leaving import leave
from protokube.errors import TryLater
from protokube.host import Mount
from protokube.members.identity import Identity, Unreadable
from protokube.providers.volumes import Volume

STEP = "fence"


def sync(round_: Round) -> None:
    edges = round_.edges
    held = mounted_volumes.mounted(edges)
    verified.prune(edges, held)
    for link in links.dangling(edges, {mount.point for mount in held.values()}):
        links.remove(link)
        round_.report.done(STEP, f"removed {link.name}: its volume is not mounted")
    leaving.finish(round_)
    try:
        inventory.refresh(round_)
    except TryLater as why:
        kept = f"; serving {', '.join(held)} goes on, since the attachment is the lock" if held else ""
        raise TryLater(f"{why.message}{kept}", saw=why.saw, hint=why.hint) from why
    inventory.count_gone(round_)
    fatal_messages.prune(round_, held)
    for volume, mount in held.items():
        with round_.reported(STEP, volume):
            _one(round_, volume, mount)


def _one(round_: Round, volume: str, mount: Mount) -> None:
    # a disk that does not answer is fenced like any other
    edges, identity = round_.edges, mounted_volumes.identity_or_why_not(mount.point)
    if isinstance(identity, Unreadable) and identity.disk_error:
        round_.disk_errors[volume] = identity.disk_error
    checked = verified.is_verified(edges, volume, mount, identity)
    listed = round_.volume(volume)
    if listed is None and not inventory.is_gone(round_, volume):
        unclear = round_.unclear.get(volume, "it says that the volume does not exist; it may come back")
        round_.waiting(STEP, volume, f"the provider does not list it, and it is still served: {unclear}")
        return
    if listed is not None and listed.attached_to is None and _answers(round_, mount):
        round_.waiting(STEP, volume, "the provider says that it is attached to nobody, and its device still answers")
        return
    etcd_cluster = identity.etcd_cluster if isinstance(identity, Identity) else ""
    if why := reason(listed, identity, edges.me.id, verified=checked):
        if listed is not None and listed.attached_to not in (None, edges.me.id):
            _confirm(round_, listed)
        leave(round_, volume, etcd_cluster, mount, why, STEP)
    elif isinstance(identity, Identity) and checked and (proof := fatal_messages.of_a_copy(round_, mount, identity)):
        why = f"it is an older copy, as etcd proves: {proof.sentence}"
        leave(round_, volume, etcd_cluster, mount, why, STEP, lambda: fatal_messages.note(edges, volume, proof))


def _answers(round_: Round, mount: Mount) -> bool:
    """Whether the kernel still shows the device that is mounted."""
    return round_.edges.disks.present(mount.number)


def _confirm(round_: Round, listed: Volume) -> None:
    """A list may be older than our own attachment, so a lookup of this volume has to confirm it."""
    found = round_.edges.volumes.look_up(listed.id)
    if found is not None and found.attached_to == round_.edges.me.id:
        raise TryLater(f"{listed.id} is attached to {listed.attached_to} in the list, and to us when looked up by id")


def reason(listed: Volume | None, identity: Identity | Unreadable | None, me: str, *, verified: bool = True) -> str:
    """Why this master must stop serving a volume that it has mounted; empty if it need not.

    A disk that was not checked yet is not served; a greater epoch there means that it is an older copy. It stays
    mounted: unmounting it would only make every round mount it again.
    """
    if listed is None:
        return "the provider says that it does not exist"
    if listed.attached_to != me:
        return f"it is attached to {listed.attached_to or 'nobody'}"
    seen = listed.epoch_for(identity.generation) if isinstance(identity, Identity) and verified else 0
    if isinstance(identity, Identity) and seen > identity.epoch:
        return f"epoch {seen} was seen, ours is {identity.epoch}"
    return ""
