"""The programs of this machine that a local cloud runs."""

from __future__ import annotations

from protokube.binaries.executables import which

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
