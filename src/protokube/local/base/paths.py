"""Where everything of one local cloud lies: one folder, so that `down` knows what is ours.

The folder carries a mark from its first moment on; nothing that lacks it is ever removed. It is closed to everybody but
its owner: keys, the database and the sockets lie in it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import Refused
from protokube.local.base import private

PARENT = Path("/var/lib/protokube/local")
MARK = "protokube-local-cloud"
"""A file in the folder that says what it is."""
BEFORE_US = ("daemon.log", "store", "client")
"""What `up` may write before the cloud is there."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The state of one cluster's local cloud."""

    root: Path
    """Absolute and without links: the kernel reports the files of loop devices this way."""

    @staticmethod
    def at(root: Path) -> Paths:
        return Paths(root.resolve())

    @staticmethod
    def of(cluster: str) -> Paths:
        """The state of this cluster; `PROTOKUBE_STATE` names another parent."""
        return Paths.at(Path(os.environ.get("PROTOKUBE_STATE") or PARENT) / cluster)

    @property
    def cluster(self) -> str:
        return self.root.name

    @property
    def database(self) -> Path:
        return self.root / "cloud.sqlite"

    @property
    def admin_socket(self) -> Path:
        return self.root / "admin.sock"

    @property
    def pid_file(self) -> Path:
        """There while a daemon answers; holds its pid."""
        return self.root / "daemon.pid"

    @property
    def lock_file(self) -> Path:
        """Locked by the daemon for as long as it lives, whatever kills it."""
        return self.root / "daemon.lock"

    @property
    def log(self) -> Path:
        return self.root / "daemon.log"

    @property
    def outside_log(self) -> Path:
        """What the process writes that is the way outside; it is known by it."""
        return self.root / "outside.log"

    @property
    def disks(self) -> Path:
        return self.root / "disks"

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def client(self) -> Path:
        """Certificates and the kubeconfig of the person who typed `up`."""
        return self.root / "client"

    @property
    def images(self) -> Path:
        """Archives of images that every host brings in when it starts; seen inside, read-only."""
        return self.root / "images"

    @property
    def hosts(self) -> Path:
        return self.root / "hosts"

    @property
    def switch(self) -> str:
        """The network namespace that holds the bridge of this cloud."""
        return f"pk-{hashlib.sha256(str(self.root).encode()).hexdigest()[:8]}"

    def host(self, name: str) -> Path:
        return self.hosts / name

    def host_socket(self, name: str) -> Path:
        return self.hosts / name / "cloud.sock"

    def image(self, volume: str) -> Path:
        """The host edge reports the stem of this name as the device's serial."""
        return self.disks / f"{volume}.img"

    def create(self) -> None:
        """Make the folders; a folder with other things in it, or of another user, is left alone."""
        self.root.mkdir(mode=private.FOLDER, parents=True, exist_ok=True)
        if (owner := self.root.stat().st_uid) != os.geteuid():  # who could open it again whenever he likes
            raise Refused(f"{self.root} belongs to user {owner}", want=f"a folder of user {os.geteuid()}, or none")
        if not self.is_ours():
            if any(found.name not in BEFORE_US for found in self.root.iterdir()):
                raise Refused(f"{self.root} is in use for something else", want="an empty folder, or one of ours")
            (self.root / MARK).write_text("The state of a local cloud; `protokube down` removes all of it.\n")
        for folder in (self.root, self.disks, self.store, self.hosts, self.images):
            private.make_folder(folder)

    def is_ours(self) -> bool:
        return (self.root / MARK).is_file()
