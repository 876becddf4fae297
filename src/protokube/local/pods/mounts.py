"""The file system of a container: the host's root, with its volumes mounted over it.

Runs in the container's own process, in a new mount namespace. It has slave propagation: a volume that the host
unmounts goes here, too, so a pod keeps only its own volumes busy.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from protokube.local.base import syscalls
from protokube.local.base.syscalls import MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_REC, MS_SLAVE
from protokube.local.pods.pods import VolumeMount, order_of_mounting

KINDS: dict[str, Callable[[int], bool]] = {
    "Directory": stat.S_ISDIR,
    "DirectoryOrCreate": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "FileOrCreate": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}


def mount_all(mounts: Sequence[VolumeMount]) -> None:
    """Mount the volumes, then /proc for the container's PID namespace."""
    syscalls.mount(None, "/", None, MS_REC | MS_SLAVE)
    # All sources are opened before anything is mounted: a source is a path of the host, not of the container.
    taken = [(mount, take(mount)) for mount in order_of_mounting(mounts)]
    for mount, (is_folder, handle) in taken:
        _show(mount, is_folder=is_folder, handle=handle)
    syscalls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def take(mount: VolumeMount) -> tuple[bool, int]:
    """Whether the hostPath is a folder, and a detached mount of it; creates the path if its type says so."""
    source = Path(mount.host_path)
    if mount.kind in ("", "DirectoryOrCreate") and not source.exists():
        source.mkdir(mode=0o755, parents=True)  # container runtimes do the same for type ''
    elif mount.kind == "FileOrCreate" and not source.exists():
        source.touch(mode=0o644)
    if mount.kind and not KINDS[mount.kind](source.stat().st_mode):
        raise NotADirectoryError(0, f"hostPath is no {mount.kind.removesuffix('OrCreate')}", mount.host_path)
    if mount.sub_path:
        inside = source / mount.sub_path
        if not inside.exists():
            inside.mkdir(mode=0o755, parents=True)
        if not inside.resolve().is_relative_to(source.resolve()):
            raise PermissionError(0, "subPath leads out of the volume", str(inside))
        source = inside
    return source.is_dir(), syscalls.copy_mount(str(source))


def _show(mount: VolumeMount, *, is_folder: bool, handle: int) -> None:
    target = Path(mount.mount_path)
    if not target.exists():
        (target if is_folder else target.parent).mkdir(parents=True, exist_ok=True)
        if not is_folder:
            target.touch()
    syscalls.attach(handle, str(target))
    if mount.read_only:
        syscalls.make_read_only(str(target))
    os.close(handle)
