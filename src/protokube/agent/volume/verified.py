"""Which mounts were checked: the disk is no older copy, and its epoch was raised for this mount.

Noted in /run, which lasts as long as mounts do and survives a restart of the agent: a restarted agent leaves a running
member alone, and checks a disk that was mounted meanwhile. A lost note only causes one more check.
"""

from __future__ import annotations

from collections.abc import Collection

from protokube.agent import links
from protokube.agent.edges import Edges
from protokube.agent.volume.runnotes import RunNotes
from protokube.host import Mount
from protokube.members.identity import Identity, Unreadable

NOTES = RunNotes("verified")


def is_verified(edges: Edges, volume: str, mount: Mount, identity: Identity | Unreadable | None) -> bool:
    """Whether this mount was checked before, by this machine.

    A manifest link into the mount is equivalent: it is made only after the check, and removed before the unmount.
    Agents of former versions left no note.
    """
    if not isinstance(identity, Identity) or identity.holder != edges.me.id:
        return False
    return is_noted(edges, volume, mount)


def is_noted(edges: Edges, volume: str, mount: Mount) -> bool:
    """The same without reading the disk, so also for a disk that cannot be read."""
    return NOTES.read(edges, volume) == _text(mount) or bool(links.pointing_into(edges, mount.point))


def note(edges: Edges, volume: str, mount: Mount) -> None:
    NOTES.write(edges, volume, _text(mount))


def since(edges: Edges, volume: str, mount: Mount) -> float | None:
    """When this mount was checked, by the wall clock, which etcd's log uses too; None if it was not."""
    try:
        return NOTES.file(edges, volume).stat().st_mtime if NOTES.read(edges, volume) == _text(mount) else None
    except FileNotFoundError:
        return None


def forget(edges: Edges, volume: str) -> None:
    NOTES.forget(edges, volume)


def prune(edges: Edges, mounted: Collection[str]) -> None:
    """Delete notes of volumes that are not mounted."""
    NOTES.keep_only(edges, mounted)


def _text(mount: Mount) -> bytes:
    return f"{mount.key}\n".encode()
