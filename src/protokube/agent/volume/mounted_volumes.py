"""The volumes that are mounted here and the content of each, read every round."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeVar

from protokube.agent.cache import StepCache
from protokube.agent.edges import Edges
from protokube.agent.round import MountedVolume, Round
from protokube.agent.volume.verified import is_verified
from protokube.errors import TryLater
from protokube.host import Block, Mount
from protokube.host.bounded import bounded
from protokube.host.files import flush_folder, read_or_none, write_atomic
from protokube.launch.machine import EtcdCluster, MasterConfig, Member
from protokube.members.identity import FILE, Identity, Unreadable, decode, encode
from protokube.members.start_values import Data
from protokube.providers.volumes import Volume

T = TypeVar("T")
POINTS = "/mnt"
PREFIX = "master-"
DRAFT = f".{FILE}."
"""Prefix of temporary files of an identity."""
DISK_ERRORS = (errno.EIO, errno.EUCLEAN, errno.EBADMSG, errno.ENXIO, errno.ENODEV)
"""Errors of a read from a broken disk or file system."""
PATIENCE = 2.0
"""Timeout in seconds for reading a few small files; a disk that hangs must not block the others."""


@dataclass(slots=True)
class MountsCache(StepCache):
    """If lost, a broken disk is found a little later."""

    failed: set[str] = field(default_factory=set)
    """Mounted volumes that could not be read in the last round."""


def point_of(volume: str) -> str:
    """The mount point of a volume, as a path of this machine."""
    return f"{POINTS}/{PREFIX}{volume}"


def mounted(edges: Edges) -> dict[str, Mount]:
    """Our mounts, by volume."""
    start = str(edges.inside(f"{POINTS}/{PREFIX}"))
    by_point = ((str(each.point), each) for each in edges.disks.mounts())  # as text: called often, for many mounts
    found = {point.removeprefix(start): each for point, each in by_point if point.startswith(start)}
    return {volume: each for volume, each in found.items() if volume and "/" not in volume}


def on_volume(action: Callable[[], T], what: str, seconds: float = PATIENCE) -> T:
    """Run a short file operation with a timeout; TryLater on a full, broken or hanging disk."""
    try:
        return bounded(action, seconds, what)
    except OSError as error:
        raise TryLater(f"{what}: {(error.strerror or str(error)).lower()}", saw=str(error.filename or "")) from error


def read_identity(point: Path) -> Identity | Unreadable | None:
    return bounded(lambda: _identity_on(point), PATIENCE, f"reading the identity on {point}")


def identity_or_why_not(point: Path) -> Identity | Unreadable | None:
    """The same, with a timeout as Unreadable: for callers that must go on if the disk hangs."""
    try:
        return read_identity(point)
    except TryLater as why:
        return Unreadable(why.message)


def _identity_on(point: Path) -> Identity | Unreadable | None:
    try:
        found = read_or_none(point / FILE)
    except OSError as error:
        of_disk = (error.strerror or str(error)).lower() if error.errno in DISK_ERRORS else ""
        return Unreadable(f"{FILE}: {error.strerror}", of_disk)
    return None if found is None else decode(found)


def observe(round_: Round) -> list[MountedVolume]:
    """Every mounted volume whose member is known; one whose member neither tags nor identity name is left alone."""
    found = []
    failed = round_.edges.cache.of(MountsCache).failed
    failed.clear()
    for volume, mount in sorted(mounted(round_.edges).items()):
        try:
            disk = _mounted_volume(round_, volume, mount)
        except TryLater as why:
            round_.waiting("volumes", volume, why.message)
            failed.add(volume)
            continue
        if disk is not None:
            found.append(disk)
    return found


def _mounted_volume(round_: Round, volume: str, mount: Mount) -> MountedVolume | None:
    listed = round_.volume(volume)
    identity, placed, state, empty = on_volume(lambda: _look(round_, mount.point, listed), f"looking at {mount.point}")
    if placed is None:
        return None
    etcd, member = placed
    block = Block(path=mount.point, number=mount.number, size=0, serial=None)
    uuid = round_.edges.uuid_of(block) if identity is None else None
    return MountedVolume(
        volume=volume, etcd=etcd, member=member, point=mount.point, listed=listed, identity=identity, data=state,
        empty=empty, uuid=uuid, verified=is_verified(round_.edges, volume, mount, identity), mount=mount,
    )  # fmt: skip


def _look(
    round_: Round, point: Path, listed: Volume | None
) -> tuple[Identity | Unreadable | None, tuple[EtcdCluster, Member] | None, Data, bool]:
    """The disk's content: its identity, its member, the state of etcd's data, and whether the disk is empty."""
    identity = _identity_on(point)
    placed = _place(round_.wanted, listed, identity)
    if placed is None:
        return identity, None, Data.MISSING, False
    return identity, placed, data_of(point, placed[0].pod.data_dir, identity), is_empty(point)


def _place(
    wanted: MasterConfig, listed: Volume | None, identity: Identity | Unreadable | None
) -> tuple[EtcdCluster, Member] | None:
    """The member by tags; if the provider does not answer, by the identity on the disk."""
    source = listed or identity
    if source is None or isinstance(source, Unreadable):
        return None
    etcd = wanted.etcd_cluster(source.etcd_cluster)
    member = etcd.member(source.member) if etcd else None
    return (etcd, member) if etcd and member else None


def data_of(point: Path, data_dir: str, identity: object) -> Data:
    """The state of etcd's data directory: etcd treats it as existing data if it holds a write-ahead log."""
    folder = point / data_dir.lstrip("/")
    has_log = any((folder / "member" / "wal").glob("*.wal"))
    if identity is None and (has_log or (point / "k8s.io").exists()):
        return Data.ORIGINAL
    return Data.PRESENT if has_log else Data.MISSING


def data_on(disk: MountedVolume) -> Data:
    """The current state of the data directory."""
    return on_volume(lambda: data_of(disk.point, disk.etcd.pod.data_dir, disk.identity), f"looking at {disk.point}")


def move_data_aside(disk: MountedVolume) -> str:
    """Rename etcd's data directory; returns its new name, "" if it is empty. Only a person may delete it."""
    folder = disk.point / disk.etcd.pod.data_dir.lstrip("/")
    if not folder.exists() or not any(folder.iterdir()):
        return ""
    taken = {each.name for each in folder.parent.iterdir()}
    aside = folder.with_name(next(name for n in count(1) if (name := f"{folder.name}.aside-{n}") not in taken))
    folder.rename(aside)
    flush_folder(folder.parent)
    return aside.name


def is_empty(point: Path) -> bool:
    """Whether it holds nothing but what mkfs makes, and temporary files of an interrupted identity write."""
    return {each.name for each in point.iterdir() if not each.name.startswith(DRAFT)} <= {"lost+found"}


def write_identity(point: Path, identity: Identity) -> None:
    for left in point.glob(f"{DRAFT}*"):
        left.unlink()
    write_atomic(point / FILE, encode(identity), 0o644)
