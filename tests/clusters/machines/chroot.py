"""A root file system that can be changed and thrown away: an overlay on the base root, entered by chroot.

It has /proc, /sys and /dev, and no service manager: the root of an image, as for `protokube nodeup --root`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from clusters.machines.base import debian_root
from clusters.machines.keeper import Keeper
from clusters.machines.tasks import DRIVER, Running, driven
from protokube.nodeup.values import Task

SETUP = """
mkdir -p {folder}/upper {folder}/work {folder}/root
mount -t overlay overlay -o lowerdir={base},upperdir={folder}/upper,workdir={folder}/work {folder}/root
cd {folder}/root
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs dev
for each in null zero full random urandom tty; do touch dev/$each; mount --bind /dev/$each dev/$each; done
mkdir dev/shm dev/pts
mount -t tmpfs tmpfs run
cd /
"""


class Chroot:
    """One such root."""

    def __init__(self, base: Path | None = None) -> None:
        """`base` is a root made before, by `keep`; else Debian's."""
        self.folder = Path(tempfile.mkdtemp(prefix="pk-chroot-"))
        self.path = self.folder / "root"
        """As it is called inside of the namespaces."""
        setup = SETUP.format(base=base or debian_root(), folder=self.folder)
        self.keeper = Keeper(setup, folder=self.folder)

    @property
    def files(self) -> Path:
        """Its files, seen from here."""
        return self.keeper.files(self.path)

    @property
    def written(self) -> Path:
        """What was written to it, as overlayfs keeps it: without the files of its base."""
        return self.keeper.files(self.folder / "upper")

    def run(self, *command: str) -> str:
        """What a command in it writes; it has to succeed."""
        return self.keeper.run("chroot", str(self.path), *command)

    def start(self, *tasks: Task, **request: object) -> Running:
        """Carry tasks out, as on the root of an image."""
        return driven(self.keeper.enter(*DRIVER), tasks, str(self.path), **request)

    def close(self) -> None:
        self.keeper.close()
