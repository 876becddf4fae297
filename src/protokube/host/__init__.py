"""This machine: block devices, mounts, files, units, routes. The values and Protocols; each edge has its own file.

Disk operations can hang for ever in the kernel, so they run in child processes with a deadline: `run` starts a job or
collects its result, and never waits. Running a job that is under way already does not start it twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The expected path of an attached volume, and its serial for identification."""

    path: Path
    serial: str | None
    """The serial that the kernel reports; None where the platform has none and the path identifies the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block device as the kernel shows it now."""

    path: Path
    """Resolved, no link."""
    number: tuple[int, int]
    """Major and minor number: the identity of the device, independent of its name."""
    size: int
    serial: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of this machine's mount table."""

    number: tuple[int, int]
    point: Path
    type: str
    options: frozenset[str]
    id: int = 0
    """The kernel's mount id; a later mount may reuse it."""

    @property
    def key(self) -> str:
        """Unique among the mounts that exist at one time."""
        return f"{self.number[0]}:{self.number[1]} mount {self.id}"


class Content(Enum):
    """What was found on a device by reading it."""

    BLANK = "blank"  # head, middle and tail were read and are zero; no signature; not open in any process
    EXT4 = "ext4"  # exactly one signature, that of an intact ext4
    FOREIGN = "foreign"  # any other signature: a file system, a partition table, several at once
    DIRTY = "dirty"  # no signature, but not zero
    BUSY = "busy"  # mounted or open on this machine
    UNREADABLE = "unreadable"  # an error or a short read anywhere: the content is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Read the device and classify its content."""

    block: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    content: Content
    description: str
    """For a person: 'an xfs file system labelled "pgdata"', 'read error at byte 4096'."""
    uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Make an ext4 with this UUID. The child probes the device again right before, and does nothing unless it is blank.

    With `again`, it also continues an interrupted format with this UUID: an ext4 with it, or the mark of the format.
    """

    block: Block
    uuid: str
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MountVolume:
    """Check (fsck -p) and mount an ext4; the mount point is made if needed."""

    block: Block
    point: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmount:
    """Unmount, and make sure that the device is in no mount namespace any more."""

    point: Path
    number: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTest:
    """Write a few bytes to a test file on a mounted file system, and flush them."""

    point: Path
    number: tuple[int, int]
    begun: float
    """By the monotonic clock: it tells the results of two tests apart."""


@dataclass(frozen=True, slots=True)
class Done:
    """The job succeeded."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The job failed; none of its processes is left, unless it is `overdue`."""

    why: str
    overdue: bool = False
    """Its deadline has passed, and it cannot be killed: the kernel waits for the disk."""
    killed: bool = False
    """Its deadline passed, and it was killed. The disk is slow, or this machine was suspended."""
    damaged: bool = False
    """The file system has errors that only a person may repair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritable:
    """A write to the file system, or its flush, failed."""

    why: str
    full: bool = False
    """Because the file system is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """Counters of a mounted file system from the kernel; nothing is read from the device."""

    errors: int
    """Errors since the last fsck; 0 where the kernel does not count them."""
    free: int
    """Bytes, including those reserved for root."""
    size: int


Job = Probe | Format | MountVolume | Unmount | WriteTest
Result = Probed | Done | Failed | Unwritable


class Disks(Protocol):
    """The block devices and mounts of this machine."""

    def find(self, device: Device) -> Block | None:
        """The device, if it exists now; links are followed. Serial and size are reported, not checked."""

    def present(self, number: tuple[int, int]) -> bool:
        """Whether the kernel has a device of this number with a size above 0."""

    def mounts(self) -> Sequence[Mount]:
        """This machine's mount table as it is now."""

    def used_by(self, number: tuple[int, int]) -> Sequence[str]:
        """Processes that still use the file system on this device, in words; an empty list proves that none does.

        TryLater if it cannot be determined. Scans all processes: for rare use only.
        """

    def file_system(self, mount: Mount) -> FileSystem:
        """Errors and free space of a mounted file system. OSError if it is not mounted any more."""

    def run(self, job: Job) -> Result | None:
        """None while it runs: call again next round. A result is returned once."""

    def running(self) -> Sequence[tuple[Job, float]]:
        """Jobs under way, each with the seconds it has taken so far."""


class Units(Protocol):
    """The service manager of this machine."""

    def ensure_started(self, unit: str) -> bool:
        """Start a unit unless it runs, without waiting for it; return whether a start was requested.

        TryLater if the service manager does not answer, Refused if there is no such unit.
        """

    def running_for(self, unit: str) -> float | None:
        """Seconds since the main process of a unit started; None if it does not run. Raises as `ensure_started`."""

    def restart(self, unit: str) -> None:
        """Restart a unit that runs, without waiting; no effect on one that does not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A destination and its gateway."""

    destination: str
    """As 10.0.0.0/24; `default` for everything."""
    via: str
    """The gateway; empty if the destination is directly connected."""
    ours: bool


class Routes(Protocol):
    """The routes of this machine. TryLater if they cannot be read or changed now."""

    def read(self) -> Sequence[Route]:
        """All routes of the main table."""

    def change(self, remove: Sequence[Route], add: Sequence[Route]) -> None:
        """Remove some of our routes, then add others; a foreign route is never replaced."""
