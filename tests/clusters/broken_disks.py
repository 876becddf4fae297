"""Breaking the file system of a real cluster's member, and waiting until it heals."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from clusters.real import RealCluster, until
from protokube.local.disk import loops
from protokube.local.disk.mounts import SHUTDOWN

MINUTES = 240.0
FLUSH_THE_LOG = 1


def point_of(cluster: RealCluster, member: str) -> str:
    return f"/mnt/master-{cluster.volume(member)['id']}"


def remount(cluster: RealCluster, member: str, options: str) -> None:
    ran = cluster.inside(cluster.host_of(member), "mount", "-o", f"remount,{options}", point_of(cluster, member))
    assert ran.returncode == 0, ran.stderr


def remount_while_etcd_restarts(cluster: RealCluster, member: str) -> None:
    """The kernel turns nothing read-only that is open for writing."""
    point = point_of(cluster, member)
    attempt = f"kill -9 $(pidof etcd); mount -o remount,ro {point} 2>/dev/null"

    def tried() -> bool:
        return cluster.inside(cluster.host_of(member), "sh", "-c", attempt).returncode == 0

    until(tried, f"{point} is read-only", MINUTES)


def shut_down(point: Path) -> None:
    """The file system gives up, as after an error of its journal; what is in the journal is kept."""
    folder = os.open(point, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", FLUSH_THE_LOG))
    finally:
        os.close(folder)


def seen_from_outside(cluster: RealCluster, member: str) -> Path:
    """Where its host has the volume of a member mounted."""
    host = next(each for each in cluster.hosts() if each["name"] == cluster.host_of(member))
    return Path(f"/proc/{host['pid']}/root{point_of(cluster, member)}")


MOST = 4 << 30
"""Bytes: more than any disk of a test has."""


def fill(point: Path, name: str = "filler") -> None:
    """To the very last block: what the file system keeps for root is root's, and so are we.

    While a volume is mounted anew, its place is a folder of this machine's own file system, which must not be filled.
    So the folder is opened first, then proven to be the root of another file system, and the file is made in what is
    open. ValueError if nothing is mounted there now.
    """
    folder = os.open(point, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.fstat(folder).st_dev == point.parent.stat().st_dev:
            raise ValueError(f"nothing is mounted at {point}")
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            allocate_all(file)
        finally:
            os.close(file)
    finally:
        os.close(folder)


def allocate_all(file: int) -> None:
    size, end = 1 << 28, 0
    while size >= 1024:
        assert end < MOST, "this is no disk of a test"
        try:
            os.posix_fallocate(file, end, size)
            end += size
        except OSError:
            size //= 2


def fill_disk_of(cluster: RealCluster, member: str) -> None:
    """Wait until the volume of a member is mounted, and fill it."""

    def filled() -> bool:
        fill(seen_from_outside(cluster, member))
        return True

    until(filled, f"the volume of {member} is filled", MINUTES)


def show_whole(device: Path, size: int) -> None:
    """Move the window of a loop device back to its image."""
    handle = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    try:
        status = bytearray(loops.INFO.size)
        fcntl.ioctl(handle, loops.GET_STATUS64, status)
        fields = list(loops.INFO.unpack(bytes(status)))
        fields[loops.OFFSET], fields[loops.SIZE_LIMIT] = 0, size
        fcntl.ioctl(handle, loops.SET_STATUS64, loops.INFO.pack(*fields))
    finally:
        os.close(handle)


def heals(cluster: RealCluster, member: str, epoch: int) -> None:
    until(lambda: cluster.volume(member)["epoch"] > epoch, f"the disk of {member} was mounted anew", MINUTES)
    until(lambda: len(cluster.healthy()) == 3, "all members are healthy", MINUTES)
    until(lambda: cluster.status()["ready"], "the cluster is ready", MINUTES)


def notes(cluster: RealCluster, kind: str) -> list[str]:
    return [each["text"] for each in cluster.notes(kind)]


def forget_faults(cluster: RealCluster) -> None:
    for file in cluster.paths.store.glob("*/etcd/main/diskfaults/*"):
        file.unlink()
