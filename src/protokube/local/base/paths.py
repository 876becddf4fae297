"""The paths of one local cloud: all in one folder, so that `down` knows what is ours.

The folder contains a mark file from the start; a folder without it is never removed. Only its owner has access: it
contains keys, the database and the sockets.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from protokube.errors import Refused
from protokube.local.base import private

PARENT = Path("/var/lib/protokube/local")
PARENT_MODE = 0o755
"""Nobody else may replace a cluster's folder; everybody may list them, so that commands know when to ask for root."""
MARK = "protokube-local-cloud"
"""The file that marks the folder as the state of a local cloud."""
BEFORE_US = ("daemon.log", "store", "client")
"""What `up` may write before the daemon creates the rest."""
RUNTIME_CONFIG = Path("/etc/protokube/containers.json")
"""In a host: the configuration of its containerd and kubelet units; only hosts with containerd have it."""
LOADED = Path("/run/containerd/images-loaded")
"""In a host: exists once the import of images that a user loaded has finished, even if it failed."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The state of one cluster's local cloud."""

    root: Path
    """Absolute and without symbolic links: the kernel reports backing files of loop devices this way."""

    @staticmethod
    def at(root: Path) -> Paths:
        return Paths(root.resolve())

    @staticmethod
    def of(cluster: str) -> Paths:
        """The state of this cluster; `PROTOKUBE_STATE` overrides the parent folder."""
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
        """Exists while a daemon serves; contains its pid."""
        return self.root / "daemon.pid"

    @property
    def lock_file(self) -> Path:
        """Locked by the daemon while it runs; the kernel releases the lock."""
        return self.root / "daemon.lock"

    @property
    def up_lock(self) -> Path:
        """Locked by each `up` while it makes the cluster; the kernel releases the lock."""
        return self.root / "up.lock"

    @property
    def stopped(self) -> Path:
        """Exists while the cluster is stopped on purpose; the next daemon removes it."""
        return self.root / "stopped"

    @property
    def removing(self) -> Path:
        """Exists while the folder is being deleted: what is left after an interruption is no cluster any more."""
        return self.root / "removing"

    @property
    def log(self) -> Path:
        return self.root / "daemon.log"

    @property
    def outside_log(self) -> Path:
        """The log of slirp4netns; also identifies its process."""
        return self.root / "outside.log"

    @property
    def disks(self) -> Path:
        return self.root / "disks"

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def client(self) -> Path:
        """Certificates and kubeconfig of the user who ran `up`."""
        return self.root / "client"

    @property
    def images(self) -> Path:
        """Image archives that every host imports when it starts; mounted read-only inside."""
        return self.root / "images"

    @property
    def prepared(self) -> Path:
        """Images, unpacked: roots of containerd that hosts share; mounted read-only inside."""
        return self.root / "prepared"

    @property
    def programs(self) -> Path:
        """Programs by image, in every version that this cluster ran; mounted read-only inside the hosts."""
        return self.root / "programs"

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
        """The disk image of a volume; its stem is the serial number of the device."""
        return self.disks / f"{volume}.img"

    def create(self) -> None:
        """Create the folders; raises Refused for a folder with other content or of another user."""
        for missing in reversed([each for each in self.root.parents if not each.exists()]):
            missing.mkdir(mode=PARENT_MODE, exist_ok=True)
            missing.chmod(PARENT_MODE)  # the umask may have taken something away
        self.root.mkdir(mode=private.FOLDER, exist_ok=True)
        if (owner := self.root.stat().st_uid) != os.geteuid():  # its owner could change the mode at any time
            raise Refused(f"{self.root} belongs to user {owner}", want=f"a folder of user {os.geteuid()}, or none")
        if not self.is_ours():
            if any(found.name not in BEFORE_US for found in self.root.iterdir()):
                raise Refused(f"{self.root} is in use for something else", want="an empty folder, or one of ours")
            (self.root / MARK).write_text("The state of a local cloud; `protokube down` removes all of it.\n")
        for folder in (self.root, self.disks, self.store, self.hosts, self.images, self.prepared, self.programs):
            private.make_folder(folder)

    def is_ours(self) -> bool:
        return (self.root / MARK).is_file()
