"""Size, serial and name of a block device from sysfs, without opening it.

Opening a device that hangs can hang; reading sysfs does not. The place of the serial differs by kind of disk: virtio
and NVMe have an attribute, SCSI has a page of vital product data, and others only a world-wide id.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path("/")
SECTOR = 512
PAGE = 4096
"""Bytes: no attribute of sysfs is longer, and each is read in one piece."""
SERIALS = ("serial", "device/serial", "device/vpd_pg80", "wwid", "device/wwid")
VPD_HEADER = 4
DELETED = " (deleted)"  # the kernel adds it to the name of a backing file that was unlinked


def folder(number: tuple[int, int], root: Path = ROOT) -> str:
    """A string, like all paths here, for speed: they are read in every round."""
    return f"{_prefix(root)}/sys/dev/block/{number[0]}:{number[1]}"


def size(number: tuple[int, int], root: Path = ROOT) -> int:
    """In bytes; 0 for a device that does not exist, or has no medium."""
    sectors = attribute(f"{folder(number, root)}/size")
    return int(sectors) * SECTOR if sectors.isdigit() else 0


def serial(number: tuple[int, int], root: Path = ROOT) -> str | None:
    """The serial of a whole disk; None for a partition."""
    place = folder(number, root)
    if os.path.exists(f"{place}/partition"):  # noqa: PTH110
        return None
    if backing := attribute(f"{place}/loop/backing_file"):
        return Path(backing.removesuffix(DELETED)).stem
    return next((found for name in SERIALS if (found := attribute(f"{place}/{name}"))), None)


def name(number: tuple[int, int], root: Path = ROOT) -> str:
    """The kernel's name, relative to /dev: 'nvme1n1'; "" for a device that does not exist."""
    for line in attribute(f"{folder(number, root)}/uevent").splitlines():
        if line.startswith("DEVNAME="):
            return line.removeprefix("DEVNAME=")
    return ""


def ext4_errors(number: tuple[int, int], root: Path = ROOT) -> int:
    """Errors that ext4 has counted on a mounted device since the last fsck; 0 if the kernel has no counter."""
    try:
        device = os.readlink(folder(number, root)).rpartition("/")[2]  # noqa: PTH115
    except OSError:
        return 0
    counted = attribute(f"{_prefix(root)}/sys/fs/ext4/{device}/errors_count")
    return int(counted) if counted.isdigit() else 0


def attribute(place: str) -> str:
    """One attribute of sysfs, stripped; "" if it does not exist or cannot be read."""
    try:
        file = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        data = os.read(file, PAGE)
    except OSError:
        return ""
    finally:
        os.close(file)
    if place.endswith("/vpd_pg80"):
        data = data[VPD_HEADER:]
    return data.decode(errors="replace").strip("\0 \t\n")


def _prefix(root: Path) -> str:
    return "" if root == ROOT else str(root)
