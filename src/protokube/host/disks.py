"""The disks of this machine: found without opening them, used in child processes with a deadline.

`run` is called every round and never waits. A job whose child cannot be killed is reported, and not started again until
that child is gone, so that two children never work on one device.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from protokube.host import (
    Block,
    Device,
    Failed,
    FileSystem,
    Format,
    Job,
    Mount,
    MountVolume,
    Probe,
    Result,
    Unmount,
    WriteTest,
)
from protokube.host.bounded import bounded
from protokube.host.child import sysfs
from protokube.host.devices import Devices
from protokube.host.jobs import COMMAND, Child
from protokube.host.mounts import MountTable
from protokube.host.usage import SECONDS, used_by

DEADLINES: Mapping[type[Any], float] = {Probe: 60.0, Format: 120.0, MountVolume: 120.0, Unmount: 30.0, WriteTest: 30.0}
GRACE = 2.0
"""Seconds for a killed child to exit before it is reported as stuck."""
FRESH = 30.0
"""Seconds after which a result that was not collected is discarded."""


class HostDisks:
    """Implements Disks. `on_done` is called, from a thread, whenever a job has ended and can be collected."""

    def __init__(
        self,
        *,
        on_done: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        devices: Devices | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._on_done = on_done
        self._clock = clock
        self._devices = devices or Devices()
        self._mount_table = MountTable(clock=clock)
        self._command = command
        self._children: dict[Job, Child] = {}

    def find(self, device: Device) -> Block | None:
        return self._devices.find(device)

    def present(self, number: tuple[int, int]) -> bool:
        return self._devices.present(number)

    def mounts(self) -> Sequence[Mount]:
        return self._mount_table.mounts()

    def used_by(self, number: tuple[int, int]) -> Sequence[str]:
        what = f"looking for processes that use device {number[0]}:{number[1]}"
        return bounded(lambda: used_by(number), 2 * SECONDS, what)  # a process stuck on a dead disk may not answer

    def file_system(self, mount: Mount) -> FileSystem:
        room = os.statvfs(mount.point)
        return FileSystem(
            errors=sysfs.ext4_errors(mount.number),
            free=room.f_bfree * room.f_frsize,
            size=room.f_blocks * room.f_frsize,
        )

    def run(self, job: Job) -> Result | None:
        self._tidy()
        child = self._children.get(job)
        if child is None:
            return self._start(job)
        if child.result is not None:
            return self._collect(job, child)
        if child.killed is not None and self._clock() > child.killed + GRACE:
            child.reported_stuck = True
            seconds = self._clock() - child.began
            return Failed(f"stuck for {seconds:.0f} s: process {child.pid} cannot even be killed", overdue=True)
        return None

    def running(self) -> Sequence[tuple[Job, float]]:
        """Including jobs that have ended and are not collected yet."""
        self._tidy()
        now = self._clock()
        return tuple((job, (child.ended or now) - child.began) for job, child in self._children.items())

    def close(self) -> None:
        """Kill all running jobs: for the end of the program."""
        for child in self._children.values():
            child.kill()

    def _start(self, job: Job) -> Failed | None:
        try:
            self._children[job] = Child(job, clock=self._clock, on_done=self._on_done, command=self._command)
        except OSError as error:
            return Failed(f"cannot start a child: {error.strerror}")
        return None

    def _collect(self, job: Job, child: Child) -> Result | None:
        del self._children[job]
        if child.killed is not None and isinstance(child.result, Failed):
            return Failed(f"killed, for it took longer than {DEADLINES[type(job)]:.0f} s", killed=True)
        return child.result

    def _tidy(self) -> None:
        """Kill overdue jobs; drop ended ones that were reported as stuck, or whose result is too old."""
        now = self._clock()
        for job, child in list(self._children.items()):
            if child.ended is None and child.killed is None and now > child.began + DEADLINES[type(job)]:
                child.kill()
            elif child.ended is not None and (child.reported_stuck or now > child.ended + FRESH):
                del self._children[job]
