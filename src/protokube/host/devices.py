"""Find the block device of a volume, whatever its current name is.

A cloud reports /dev/xvdu where the kernel has /dev/nvme1n1. Names are assigned in the order in which disks appear, so a
name may belong to another volume. A known serial decides; the name is only the first place to look.
No device is opened: one that hangs must not hang the round.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from protokube.host import Block, Device
from protokube.host.child import sysfs

MOST_LINKS = 40
Number = tuple[int, int]


def block_number(path: Path) -> Number | None:
    """Major and minor of a block device's node; None for anything else."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return (os.major(status.st_rdev), os.minor(status.st_rdev)) if stat.S_ISBLK(status.st_mode) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """The devices below a root: "/" on a machine, "/rootfs" in a container that mounts the machine's root there."""

    root: Path = Path("/")
    number_of: Callable[[Path], Number | None] = block_number

    def find(self, device: Device) -> Block | None:
        """The device, if it exists now. If its path has another serial, the one disk with the right serial."""
        named = self.at(device.path)
        if device.serial is None or (named and named.serial == device.serial):
            return named
        right = [block for block in self.disks() if block.serial == device.serial]
        return right[0] if len(right) == 1 else named

    def present(self, number: Number) -> bool:
        return sysfs.size(number, self.root) > 0

    def at(self, path: Path) -> Block | None:
        """The block device at a path, links followed within the root."""
        place = self.resolve(path)
        number = place and self.number_of(place)
        size = sysfs.size(number, self.root) if number else 0
        if not place or not number or not size:
            return None
        return Block(path=place, number=number, size=size, serial=sysfs.serial(number, self.root))

    def disks(self) -> Iterator[Block]:
        """Every whole disk that has a node in /dev."""
        try:
            names = sorted(folder.name for folder in (self.root / "sys/dev/block").iterdir())
        except OSError:
            return
        for name in names:
            major, _, minor = name.partition(":")
            number = int(major), int(minor)
            block = self.at(Path("/dev") / sysfs.name(number, self.root))
            if block and block.number == number and block.serial is not None:
                yield block

    def resolve(self, path: Path) -> Path | None:
        """Resolve a path with its links inside the root, as after chroot; None if that fails."""
        root = "" if self.root == Path("/") else str(self.root)
        waiting, place, links = [*reversed(self.inside(path).parts)], "", 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                place = place.rpartition("/")[0]
                continue
            try:
                target = os.readlink(f"{root}{place}/{part}")  # noqa: PTH115
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
                    return None
                place = f"{place}/{part}"  # not a link, or missing: the caller finds out
                continue
            links += 1
            if links > MOST_LINKS:
                return None
            if target.startswith("/"):
                place = ""
            waiting += reversed([each for each in target.split("/") if each not in ("", ".")])
        return Path(f"{root}{place}" or "/")

    def inside(self, path: Path) -> Path:
        """The path relative to the root; a path that already begins with the root means the same."""
        if self.root != Path("/") and path.is_relative_to(self.root):
            return path.relative_to(self.root)
        return Path("/", path).relative_to("/")
