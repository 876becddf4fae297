"""The local cloud: what its hosts may ask of it, and what its operator may do to it.

Called from many threads. Each volume and each host has a lock of its own for the slow parts (devices, processes); who
holds a volume is decided in the database. A volume is taken from a host in one way only: the host is declared dead
first, so that it can take nothing more, then its disks are cut off or let go, and only then are they free.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from protokube.errors import InvalidRequest, ProtokubeError, Refused, TryLater
from protokube.host import Device
from protokube.local.base.db import Database
from protokube.local.base.paths import Paths
from protokube.local.cloud.host_registry import Census, Host
from protokube.local.cloud.volumes import Volumes
from protokube.local.disk import disks
from protokube.providers.machines import Machine
from protokube.providers.volumes import Volume

log = logging.getLogger(__name__)


class Machinery(Protocol):
    """What the cloud does to a running host; `protokube.local.host.hosts` is the real one."""

    def alive(self, pid: int, started: int) -> bool: ...
    def kill(self, pid: int) -> None: ...
    def freeze(self, pid: int) -> None: ...
    def thaw(self, pid: int) -> None: ...
    def add_device(self, pid: int, name: str, number: tuple[int, int]) -> None: ...
    def remove_device(self, pid: int, name: str) -> None: ...


class Cloud:
    """Volumes and hosts of one cluster."""

    def __init__(self, paths: Paths, database: Database, machinery: Machinery) -> None:
        self.paths, self.database, self.machinery = paths, database, machinery
        self.volumes, self.census = Volumes(database), Census(database)
        self.changes = 0
        """Rises with every change of a volume or a machine."""
        self.on_change: list[Callable[[], None]] = []
        self.on_death: list[Callable[[], None]] = []
        """Called from any thread when a host was declared dead, before its volumes are free."""
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._guard = threading.Lock()

    # What a host asks.

    def me(self, host: str) -> Machine:
        return self.census.find(host).machine()

    def list_machines(self) -> Sequence[Machine]:
        return sorted((host.machine() for host in self.census.living()), key=lambda machine: machine.id)

    def list_volumes(self) -> Sequence[Volume]:
        """By tags."""
        return [each for each in self.volumes.everything() if each.tagged]

    def look_up(self, volume: str) -> Volume | None:
        """Exactly this one, tagged or not."""
        return self.volumes.look_up(volume)

    def write_tags(self, host: str, volume: str, like: Volume) -> None:
        """The host that holds a volume says again what it is."""
        self.volumes.write_tags(volume, like, host)
        self.changed()

    def attach(self, host: str, volume: str) -> None:
        """The host's own; raises VolumeTaken, or TryLater while somebody may still write to the disk."""
        self._living_master(host)
        with self._alone(volume):
            found = self.volumes.find(volume)
            image = self.paths.image(volume)
            if found.attached_to is None and (users := disks.who_uses(image)):
                raise TryLater(f"{volume} is still in use", saw="; ".join(users), want="nobody has it mounted or bound")
            newly = self.volumes.claim(volume, host)
            try:
                self._show(self.census.find(host), found)
            except BaseException:
                if newly:
                    disks.detach(image, patience=0)
                    self.volumes.free(volume, host)
                raise
        if newly:
            self.changed()

    def device(self, host: str, volume: str) -> Device:
        holder = self.volumes.find(volume).attached_to
        if holder != host:
            raise Refused(f"{volume} is not attached to {host}", saw=f"attached to {holder or 'nobody'}")
        return Device(path=Path("/dev") / device_name(volume), serial=volume)

    def write_mark(self, host: str, volume: str, mark: str) -> None:
        if self.volumes.write_mark(volume, mark, host):
            self.changed()

    def write_epoch(self, host: str, volume: str, epoch: int, holder: str, generation: str) -> None:
        if self.volumes.write_epoch(volume, epoch, holder, host, generation=generation):
            self.changed()

    def release(self, host: str, volume: str) -> None:
        """The host gives its own volume away; TryLater while it has the volume mounted."""
        self._living_master(host)
        with self._alone(volume):
            found = self.volumes.find(volume)
            if found.attached_to != host:
                return
            image = self.paths.image(volume)
            if users := disks.who_mounts(image):
                raise TryLater(f"{volume} is still mounted", saw="; ".join(users), want="nobody has it mounted")
            self._detach(found, host, disks.PATIENCE)
        self.changed()

    def create_volume(self, host: str, like: Volume, request: str) -> Volume:
        self._living_master(host)
        return self._create(like, request, founder=False)

    # What the operator does.

    def create_founders(self, likes: Sequence[Volume]) -> Sequence[Volume]:
        """The volumes a cluster begins with; asked again, the same."""
        return [self._create(like, f"{like.etcd_cluster}/{like.member}", founder=True) for like in likes]

    def set_tags(self, volume: str, etcd_cluster: str, member: str, members: Sequence[str]) -> None:
        """What a tool or a person does to tags; empty ones take them away."""
        like = replace(self.volumes.find(volume), etcd_cluster=etcd_cluster, member=member, members=tuple(members))
        self.volumes.write_tags(volume, like)
        self.changed()

    def delete_volume(self, volume: str) -> None:
        """Lose a disk: whoever has it is cut off first, and nothing of it is left."""
        with self._alone(volume):
            found = self.volumes.find(volume)
            disks.detach(self.paths.image(volume), patience=0)
            self._hide(found)
            self.volumes.delete(volume)
            self.paths.image(volume).unlink(missing_ok=True)
        self.changed()

    def kill_host(self, host: str) -> None:
        """Pull its plug; that it is dead is for the group to notice."""
        self.machinery.kill(self._running(host))

    def freeze_host(self, host: str) -> None:
        self.machinery.freeze(self._running(host))

    def thaw_host(self, host: str) -> None:
        self.machinery.thaw(self._running(host))

    def declare_dead(self, host: str, *, kill: bool = True) -> None:
        """Take everything from it, for good. With `kill`, its processes too; without, it may be frozen and wake up.

        Idempotent: what could not be taken the first time is tried again.
        """
        with self._alone(host):
            newly = self.census.bury(host)
            found = self.census.find(host)  # afterwards: whoever starts it now looks whether it was declared dead
            if newly:
                self._tell(self.on_death)
            try:
                if kill and self.is_running(found) and found.pid is not None:
                    self.machinery.kill(found.pid)
            finally:  # one that does not finish dying loses its disks all the same
                patience = 0 if self.is_running(found) else disks.PATIENCE
                for volume in self.volumes.held_by(host):
                    self._detach(volume, host, patience)
                    newly = True
                if newly:
                    self.changed()

    def power_off(self) -> Sequence[str]:
        """Every host at once, as when the power fails."""
        names = [host.name for host in self.census.living()]
        if names:
            with ThreadPoolExecutor(len(names)) as pool:
                list(pool.map(self.declare_dead, names))
        return names

    def restore(self) -> Sequence[str]:
        """After the daemon was gone: see who lives, give them their devices, and bury the others; says whom.

        What does not succeed is logged, and left for later: one disk that hangs must not keep the cloud from starting.
        """
        gone = [host.name for host in self.census.living() if not self.is_running(host)]
        for lost in self.volumes.deleted():
            self._try(partial(disks.destroy, self.paths.image(lost)))
        for host in self.census.everybody():
            held = self.volumes.held_by(host.name)
            if host.name in gone or (host.dead and held):
                self._try(partial(self.declare_dead, host.name, kill=host.name in gone))
            else:
                for volume in held:
                    self._try(partial(self._recover, host, volume))
        return gone

    def _recover(self, host: Host, volume: Volume) -> None:
        disks.recover(self.paths.image(volume.id))
        self._show(host, volume)

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (ProtokubeError, OSError) as why:
            log.error("not restored for now: %s", why)

    def is_running(self, host: Host) -> bool:
        """Whether its processes are there, whatever was declared."""
        return host.pid is not None and host.started is not None and self.machinery.alive(host.pid, host.started)

    def changed(self) -> None:
        with self._guard:
            self.changes += 1
        self._tell(self.on_change)

    def _tell(self, whom: Sequence[Callable[[], None]]) -> None:
        for tell in whom:
            tell()

    def _create(self, like: Volume, request: str, *, founder: bool) -> Volume:
        if not request:
            raise InvalidRequest("a volume is made for a request", want="a request that is not empty")
        with self._alone(f"request {request} {founder}"):
            before = self.volumes.made_for(request, founder=founder)
            if before is not None:
                return before
            volume = self.volumes.new_id()
            disks.create(self.paths.image(volume), like.size)
            made = self.volumes.add(volume, like, request, founder=founder)
        self.changed()
        return made

    def _show(self, host: Host, volume: Volume) -> None:
        """Bind the disk, unless it is, and put its device into the host."""
        image = self.paths.image(volume.id)
        number = disks.find(image) or disks.attach(image, volume.size)
        if host.pid is not None:
            self.machinery.add_device(host.pid, device_name(volume.id), number)

    def _hide(self, volume: Volume) -> None:
        """Take the device out of its host, if that still runs."""
        if volume.attached_to is not None:
            host = self.census.find(volume.attached_to)
            if host.pid is not None and self.is_running(host):
                with suppress(OSError):  # it is dying in this moment
                    self.machinery.remove_device(host.pid, device_name(volume.id))

    def _detach(self, volume: Volume, host: str, patience: float) -> None:
        with self._alone(volume.id):
            if self.volumes.find(volume.id).attached_to == host:
                disks.detach(self.paths.image(volume.id), patience=patience)
                self._hide(volume)
                self.volumes.free(volume.id, host)

    def _living_master(self, host: str) -> None:
        """Refused for any other host, before anything slow is begun for it."""
        found = self.census.find(host)
        if found.dead:
            raise Refused(f"{host} was declared dead", want="a host that exists")
        if not found.master:
            raise Refused(f"{host} is no master", want="only masters make and attach volumes")

    def _running(self, host: str) -> int:
        found = self.census.find(host)
        if found.pid is None or not self.is_running(found):
            raise Refused(f"{host} does not run")
        return found.pid

    @contextmanager
    def _alone(self, resource: str) -> Iterator[None]:
        with self._guard:
            lock = self._locks[resource]
        with lock:
            yield


def device_name(volume: str) -> str:
    return f"pk-{volume}"
