"""Which mounts were checked: the disk is no older copy, and its epoch was raised for this very mount.

Noted in /run, which lasts as long as mounts do and longer than an agent: an agent that starts anew finds a member it
has to leave alone, and a disk that was mounted while nobody looked is checked again. Losing a note only means one more
check.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from protokube.agent import links
from protokube.agent.world import World
from protokube.host import Mount
from protokube.host.files import read_or_none, remove, write_atomic
from protokube.members.identity import Identity, Unreadable

FOLDER = "/run/protokube/verified"


def is_verified(world: World, volume: str, mount: Mount, identity: Identity | Unreadable | None) -> bool:
    """Whether this mount was checked before, by this machine.

    A manifest link into the mount says the same: it is made only after the check, and removed before the unmount.
    Agents of former versions left no note.
    """
    if not isinstance(identity, Identity) or identity.holder != world.me.id:
        return False
    return is_noted(world, volume, mount)


def is_noted(world: World, volume: str, mount: Mount) -> bool:
    """The same, without asking the disk: of one that cannot be read, too."""
    return read_or_none(_file(world, volume)) == _note(mount) or bool(links.pointing_into(world, mount.point))


def note(world: World, volume: str, mount: Mount) -> None:
    file = _file(world, volume)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(file, _note(mount), 0o600, durable=False)


def since(world: World, volume: str, mount: Mount) -> float | None:
    """When this mount was checked, by the clock that also etcd writes its output by; None if it was not."""
    file = _file(world, volume)
    try:
        return file.stat().st_mtime if read_or_none(file) == _note(mount) else None
    except FileNotFoundError:
        return None


def forget(world: World, volume: str) -> None:
    remove(_file(world, volume))


def prune(world: World, mounted: Collection[str]) -> None:
    """Forget volumes that are not mounted."""
    folder = world.inside(FOLDER)
    if folder.is_dir():
        for file in folder.iterdir():
            if file.name not in mounted:
                remove(file)


def _file(world: World, volume: str) -> Path:
    return world.inside(FOLDER) / volume


def _note(mount: Mount) -> bytes:
    return f"{mount.number[0]}:{mount.number[1]} mount {mount.id}\n".encode()
