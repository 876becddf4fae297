"""The local cloud: the calls of its hosts, and the operations of its operator.

Called from many threads. Each volume and each host has its own lock for the slow parts (devices, processes); the
database decides who holds a volume. There is one way to take a volume from a host: the host is declared dead first,
so that it can attach nothing more, then its disks are cut off or released, and only then are the volumes free.
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
from protokube.local.cloud.host_registry import Host, HostRegistry
from protokube.local.cloud.volumes import Volumes
from protokube.local.disk import disks
from protokube.providers.machines import Machine
from protokube.providers.volumes import Volume, need_free

log = logging.getLogger(__name__)


class Machinery(Protocol):
    """Operations on a running host; `protokube.local.host.hosts` is the real implementation."""

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
        self.volumes, self.registry = Volumes(database), HostRegistry(database)
        self.changes = 0
        """Incremented with every change of a volume or a machine."""
        self.on_change: list[Callable[[], None]] = []
        self.on_death: list[Callable[[], None]] = []
        """Called in any thread once a host was declared dead, before its volumes are free."""
        self._locks: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        self._guard = threading.Lock()

    # Calls of hosts.

    def me(self, host: str) -> Machine:
        return self.registry.find(host).machine()

    def list_machines(self) -> Sequence[Machine]:
        return sorted((host.machine() for host in self.registry.living()), key=lambda machine: machine.id)

    def list_volumes(self) -> Sequence[Volume]:
        """Every tagged volume."""
        return [each for each in self.volumes.everything() if each.tagged]

    def look_up(self, volume: str) -> Volume | None:
        """The volume with this id, tagged or not."""
        return self.volumes.look_up(volume)

    def write_tags(self, host: str, volume: str, like: Volume) -> None:
        """Write the tags of a volume again, for the host that holds it."""
        self.volumes.write_tags(volume, like, host)
        self.changed()

    def attach(self, host: str, volume: str) -> None:
        """Attach a volume to the host; raises VolumeTaken, or TryLater while a process may still write to the disk."""
        self._living_master(host)
        with self._locked(volume):
            found = self.volumes.find(volume)
            image = self.paths.image(volume)
            if found.attached_to is None:
                disks.need_unused(image)
            newly = self.volumes.claim(volume, host)
            try:
                self._expose_device(self.registry.find(host), found)
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
        """Detach a volume that the host holds; raises TryLater while it is mounted."""
        self._living_master(host)
        with self._locked(volume):
            found = self.volumes.find(volume)
            if found.attached_to != host:
                return
            image = self.paths.image(volume)
            if users := disks.who_mounts(image):
                raise TryLater(f"{volume} is still mounted", saw="; ".join(users), want="a volume that is not mounted")
            self._detach(found, host, disks.PATIENCE)
        self.changed()

    def create_volume(self, host: str, like: Volume, request: str) -> Volume:
        self._living_master(host)
        return self._create(like, request, founder=False)

    # Operations of the operator.

    def create_founders(self, likes: Sequence[Volume]) -> Sequence[Volume]:
        """Create the volumes a cluster begins with; idempotent."""
        return [self._create(like, f"{like.etcd_cluster}/{like.member}", founder=True) for like in likes]

    def set_tags(self, volume: str, etcd_cluster: str, member: str, members: Sequence[str]) -> None:
        """Set tags as a tool or a person would; empty strings remove them."""
        like = replace(self.volumes.find(volume), etcd_cluster=etcd_cluster, member=member, members=tuple(members))
        self.volumes.write_tags(volume, like)
        self.changed()

    def delete_volume(self, volume: str) -> None:
        """Delete a volume with its data; a host that uses it is cut off first."""
        with self._locked(volume):
            found = self.volumes.find(volume)
            disks.detach(self.paths.image(volume), patience=0)
            self._hide_device(found)
            self.volumes.delete(volume)
            self.paths.image(volume).unlink(missing_ok=True)
        self.changed()

    def delete_free_volume(self, volume: str) -> None:
        """Delete a volume that no host holds; no effect if there is none. Refused while it is attached."""
        with self._locked(volume):
            if found := self.volumes.look_up(volume):
                need_free(found)
                disks.need_unused(self.paths.image(volume))
                self.delete_volume(volume)

    def kill_host(self, host: str) -> None:
        """Kill the processes of a host; the group controller notices that it died."""
        self.machinery.kill(self._running(host))

    def freeze_host(self, host: str) -> None:
        self.machinery.freeze(self._running(host))

    def thaw_host(self, host: str) -> None:
        self.machinery.thaw(self._running(host))

    def declare_dead(self, host: str, *, kill: bool = True) -> None:
        """Fence the host for good: detach its volumes; with `kill`, end its processes. Without, it may wake up later.

        Idempotent: a call retries what an earlier one could not do.
        """
        with self._locked(host):
            newly = self.registry.mark_dead(host)
            found = self.registry.find(host)  # after marking: a start under way checks `dead` at its end
            if newly:
                self._notify(self.on_death)
            try:
                if kill and self.is_running(found) and found.pid is not None:
                    self.machinery.kill(found.pid)
            finally:  # a host that cannot be killed loses its disks all the same
                patience = 0 if self.is_running(found) else disks.PATIENCE
                for volume in self.volumes.held_by(host):
                    self._detach(volume, host, patience)
                    newly = True
                if newly:
                    self.changed()

    def power_off(self) -> Sequence[str]:
        """Declare every host dead at once, as in a power failure."""
        names = [host.name for host in self.registry.living()]
        if names:
            with ThreadPoolExecutor(len(names)) as pool:
                list(pool.map(self.declare_dead, names))
        return names

    def restore(self) -> Sequence[str]:
        """After a restart of the daemon: restore devices of running hosts, declare the others dead, and return those.

        A failure is logged and retried later: one disk that hangs must not keep the cloud from starting.
        """
        self.registry.forget_processes_of_another_boot(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        gone = [host.name for host in self.registry.living() if not self.is_running(host)]
        for lost in self.volumes.deleted():
            self._try(partial(disks.destroy, self.paths.image(lost)))
        for host in self.registry.all_hosts():
            held = self.volumes.held_by(host.name)
            if host.name in gone or (host.dead and held):
                self._try(partial(self.declare_dead, host.name, kill=host.name in gone))
            else:
                for volume in held:
                    self._try(partial(self._recover, host, volume))
        return gone

    def _recover(self, host: Host, volume: Volume) -> None:
        disks.recover(self.paths.image(volume.id))
        self._expose_device(host, volume)

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (ProtokubeError, OSError) as why:
            log.error("not restored for now: %s", why)

    def is_running(self, host: Host) -> bool:
        """Whether its init process runs, declared dead or not."""
        return host.pid is not None and host.started is not None and self.machinery.alive(host.pid, host.started)

    def changed(self) -> None:
        with self._guard:
            self.changes += 1
        self._notify(self.on_change)

    def _notify(self, callbacks: Sequence[Callable[[], None]]) -> None:
        for callback in callbacks:
            callback()

    def _create(self, like: Volume, request: str, *, founder: bool) -> Volume:
        if not request:
            raise InvalidRequest("a volume is made for a request", want="a request that is not empty")
        with self._locked(f"request {request} {founder}"):
            before = self.volumes.made_for(request, founder=founder)
            if before is not None:
                return before
            volume = self.volumes.new_id()
            disks.create(self.paths.image(volume), like.size)
            made = self.volumes.add(volume, like, request, founder=founder)
        self.changed()
        return made

    def _expose_device(self, host: Host, volume: Volume) -> None:
        """Bind the disk to a loop device, unless it is bound, and create the device node inside the host."""
        image = self.paths.image(volume.id)
        number = disks.find(image) or disks.attach(image, volume.size)
        if host.pid is not None:
            self.machinery.add_device(host.pid, device_name(volume.id), number)

    def _hide_device(self, volume: Volume) -> None:
        """Remove the device node from the host, if that still runs."""
        if volume.attached_to is not None:
            host = self.registry.find(volume.attached_to)
            if host.pid is not None and self.is_running(host):
                with suppress(OSError):  # the host is just ending
                    self.machinery.remove_device(host.pid, device_name(volume.id))

    def _detach(self, volume: Volume, host: str, patience: float) -> None:
        with self._locked(volume.id):
            if self.volumes.find(volume.id).attached_to == host:
                disks.detach(self.paths.image(volume.id), patience=patience)
                self._hide_device(volume)
                self.volumes.free(volume.id, host)

    def _living_master(self, host: str) -> None:
        """Raise Refused for any other host, before slow work starts for it."""
        found = self.registry.find(host)
        if found.dead:
            raise Refused(f"{host} was declared dead", want="a host that exists")
        if not found.master:
            raise Refused(f"{host} is no master", want="only masters make and attach volumes")

    def _running(self, host: str) -> int:
        found = self.registry.find(host)
        if found.pid is None or not self.is_running(found):
            raise Refused(f"{host} does not run")
        return found.pid

    @contextmanager
    def _locked(self, resource: str) -> Iterator[None]:
        with self._guard:
            lock = self._locks[resource]
        with lock:
            yield


def device_name(volume: str) -> str:
    return f"pk-{volume}"
