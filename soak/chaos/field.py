"""The cluster under test, as faults access it from outside: hosts, processes, mounts and images by member."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sqlite3
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from clusters.real import RealCluster, until
from protokube.errors import ProtokubeError
from protokube.local.base.processes import processes
from protokube.local.bringup import dns_address
from protokube.local.disk import loops
from protokube.local.disk.mounts import FREEZE, THAW
from protokube.providers.dns.keys import TsigKey
from protokube.providers.dns.rfc2136 import Rfc2136Dns

KEPT = ".kept"
"""The suffix of a kept original image; it is next to the images, so that it is removed with the cluster."""


class Field:
    """One cluster, and what faults have saved in order to undo themselves."""

    def __init__(self, cluster: RealCluster, sleep: Callable[[float], None] = time.sleep) -> None:
        self.cluster, self.paths, self.admin = cluster, cluster.paths, cluster.admin
        self.sleep = sleep
        """Raises an exception as soon as something is broken."""
        self.saved: dict[object, Any] = {}
        """By fault: what it needs to undo itself."""

    # Hosts and their processes.

    def host_of(self, member: str) -> str:
        return str(until(lambda: self.volume(member)["attached_to"], f"a host holds the volume of {member}"))

    def pid_of(self, host: str) -> int:
        """The pid of a host's init process; ProcessLookupError if the host does not run."""
        for each in self.admin.call("hosts"):
            if each["name"] == host and each["running"]:
                return int(each["pid"])
        raise ProcessLookupError(f"{host} does not run")

    def etcd_of(self, host: str) -> list[int]:
        return [each for each in processes(self.pid_of(host)) if program(each) == "etcd"]

    def agent_of(self, host: str) -> list[int]:
        """An agent that has just ended is started again: a fault without anybody to suffer it would be none."""
        return until(lambda: [each for each in processes(self.pid_of(host)) if is_agent(each)], f"an agent in {host}")

    def kill_host(self, host: str) -> None:
        with suppress(ProtokubeError):  # it is gone already
            self.admin.call("kill_host", host=host)

    def poke(self) -> None:
        """Make every agent run a round now."""
        self.admin.call("api_down", seconds=0)

    # Volumes.

    def volume(self, member: str) -> dict[str, Any]:
        """The volume that serves a member; an unattached one comes last."""
        found = [each for each in self.admin.call("volumes") if each["member"] == member]
        if not found:
            raise FileNotFoundError(f"no volume is tagged for {member}")
        return dict(min(found, key=lambda each: each["attached_to"] is None))

    def mount_point(self, member: str) -> Path:
        """The mount point of the volume in its host, as a path from outside."""
        volume = self.volume(member)
        return Path(f"/proc/{self.pid_of(volume['attached_to'])}/root/mnt/master-{volume['id']}")

    def until_mounted(self, member: str) -> Path:
        def look() -> Path | None:
            point = self.mount_point(member)
            return point if point.is_mount() else None

        return until(look, f"the volume of {member} is mounted")

    @contextmanager
    def powered_off(self, *members: str) -> Iterator[list[Path]]:
        """Kill the hosts of these members and pause their groups; yields the images of their disks, now unused."""
        volumes = [self.volume(member) for member in members]
        images = [Path(each["image"]) for each in volumes]
        self.admin.call("pause_group")
        try:
            for each in volumes:
                if each["attached_to"] is not None:
                    self.kill_host(each["attached_to"])
            until(lambda: not [x for image in images for x in loops.bound(image)], "the disks are let go")
            yield images
        finally:
            self.admin.call("resume_group")

    def put_back(self, *members: str) -> None:
        """Restore the kept original images, as a person with a backup does."""
        with self.powered_off(*members) as images:
            for image in images:
                if kept(image).exists():
                    kept(image).replace(image)

    def discard(self) -> None:
        """Remove kept images that are no longer needed."""
        for each in self.paths.disks.glob(f"*{KEPT}"):
            each.unlink()

    def change_tags(self, change: Callable[[sqlite3.Connection], None]) -> None:
        """Edit the volumes in the cloud's database directly, as an operator edits tags in a console."""
        connection = sqlite3.connect(self.paths.database, timeout=10)
        try:
            with connection:
                change(connection)
        finally:
            connection.close()
        self.poke()

    # Names and the state store.

    def zone(self) -> Rfc2136Dns:
        key = json.loads((self.paths.store / self.paths.cluster / "secrets/dns-update-key").read_text())
        server, _, port = dns_address(self.admin).rpartition(":")
        return Rfc2136Dns(self.paths.cluster, server, TsigKey(name=key["name"], secret=key["secret"]), port=int(port))


def program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def is_agent(pid: int) -> bool:
    """Whether a process is an agent, also one that AgentClock starts by a script."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    given = words[2:] if words[1:2] == [b"-P"] else words[1:]
    return given[:3] == [b"-m", b"protokube", b"agent"] or (given[:1] == [b"-c"] and b'"agent"' in given[1])


def send(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def kept(image: Path) -> Path:
    return image.with_suffix(KEPT)


def copy_image(source: Path, target: Path) -> None:
    subprocess.run(["cp", "--sparse=always", "--reflink=auto", source, target], check=True)


@contextmanager
def at_rest(point: Path) -> Iterator[None]:
    """Freeze a file system while the context lasts: everything is flushed, as in a cloud's snapshot."""
    folder = hold_still(point)
    try:
        yield
    finally:
        let_go_on(folder)


def hold_still(point: Path) -> int:
    """Freeze a file system; returns an open folder that can be used to thaw it, even after it is unmounted."""
    folder = os.open(point, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(folder, FREEZE, struct.pack("I", 0))
    except OSError:
        os.close(folder)
        raise
    return folder


def let_go_on(folder: int) -> None:
    try:
        fcntl.ioctl(folder, THAW, struct.pack("I", 0))
    finally:
        os.close(folder)
