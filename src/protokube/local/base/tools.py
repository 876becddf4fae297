"""The programs of this machine that a local cloud runs."""

from __future__ import annotations

from protokube.binaries.executables import which
from protokube.errors import Refused
from protokube.host.mounts import mounts

TOOLS = (
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
    ("losetup", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
)


def missing_tools() -> list[tuple[str, str]]:
    """Programs that the local cloud needs and this machine lacks, each with its Debian package."""
    return [(program, package) for program, package in TOOLS if which(program) is None]


def prove_mounted_root() -> None:
    """Refused in a chroot into a plain folder: a host cannot have mounts of its own where the root is no mount."""
    if not any(str(each.point) == "/" for each in mounts()):
        raise Refused(
            "hosts cannot have mounts of their own here: the root folder of this process is not a mount",
            saw="a chroot into a plain folder",
            hint="before you enter it: mount --bind FOLDER FOLDER",
        )
