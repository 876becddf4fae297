"""This machine: block devices, mounts, files, units, routes. The values and Protocols; each edge has a file of its own.

Disk work can hang for ever in the kernel, so it runs in children with a deadline: `run` starts a job or collects its
result, and never waits. The same job asked for again while it runs is the same job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Where this machine should see a volume that it holds, and how to know that it is the one."""

    path: Path
    serial: str | None
    """What the kernel reports as the device's serial; None where the platform has none and the path itself is proof."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block device as the kernel shows it now."""

    path: Path
    """Resolved, no link."""
    number: tuple[int, int]
    """Major and minor: what a device really is, whatever it is called."""
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
    """The kernel's number of this mount; a later mount may get it again."""

    @property
    def key(self) -> str:
        """Tells mounts apart that exist at one time."""
        return f"{self.number[0]}:{self.number[1]} mount {self.id}"


class Content(Enum):
    """What was found on a device by reading it."""

    BLANK = "blank"  # head, middle and tail were read and are zero; no signature; nobody has it open
    EXT4 = "ext4"  # exactly one signature, and it is a whole ext4
    FOREIGN = "foreign"  # any other signature: a file system, a partition table, several at once
    DIRTY = "dirty"  # no signature, but not zero
    BUSY = "busy"  # mounted or open on this machine
    UNREADABLE = "unreadable"  # an error or a short read anywhere: says nothing about what is there


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Read the device, and say what is on it."""

    block: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    content: Content
    told: str
    """For a person: 'an xfs file system labelled "pgdata"', 'read error at byte 4096'."""
    uuid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Make an ext4 with this UUID. The child proves the device once more, right before, and does nothing unless it is
    blank, or `again` and it carries no signature but ext4 with this very UUID (or none, a format that was cut short).
    """

    block: Block
    uuid: str
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MountVolume:
    """Check (fsck -p) and mount an ext4 at a point, which is made if it is not there."""

    block: Block
    point: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmount:
    """Take a mount away, and make sure that no process's mount table shows the device any more."""

    point: Path
    number: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTest:
    """Write a few bytes to a file of ours on a mounted file system, and flush them."""

    point: Path
    number: tuple[int, int]
    begun: float
    """By the monotonic clock: the result of one test is never taken for that of another."""


@dataclass(frozen=True, slots=True)
class Done:
    """The job did what it says."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The job did not do it; nothing of it is left running, unless it is `overdue`."""

    why: str
    overdue: bool = False
    """Its time is over, and it cannot even be killed: the kernel waits for the disk."""
    killed: bool = False
    """Its time was over, and it was killed. The disk is slow, or this machine stood still."""
    damaged: bool = False
    """The file system has errors that only a person may mend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritable:
    """The file system did not take a write, or did not flush it."""

    why: str
    full: bool = False
    """For want of room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """What the kernel counts of a mounted file system; nothing is read from the device for it."""

    errors: int
    """Since it was last checked; 0 where the kernel does not count them."""
    free: int
    """Bytes; those that only root may use included."""
    size: int


Job = Probe | Format | MountVolume | Unmount | WriteTest
Result = Probed | Done | Failed | Unwritable


class Disks(Protocol):
    """The block devices and mounts of this machine."""

    def find(self, device: Device) -> Block | None:
        """The device, if it is there now; links are followed. Serial and size are reported, not judged."""

    def present(self, number: tuple[int, int]) -> bool:
        """Whether the kernel shows a device of this number that has something behind it."""

    def mounts(self) -> Sequence[Mount]:
        """This machine's mount table as it is now."""

    def used_by(self, number: tuple[int, int]) -> Sequence[str]:
        """Processes that still use the file system on this device, in words; none is a proof that nobody does.

        TryLater where it cannot be told. All processes are looked at: for rare questions only.
        """

    def file_system(self, mount: Mount) -> FileSystem:
        """How a mounted file system stands. OSError if it is not mounted any more."""

    def run(self, job: Job) -> Result | None:
        """None while it runs: ask again next round. A result is given once, and forgotten."""

    def running(self) -> Sequence[tuple[Job, float]]:
        """Jobs under way, each with the seconds it has taken so far."""


class Units(Protocol):
    """The service manager of this machine."""

    def ensure_started(self, unit: str) -> bool:
        """Ask for a unit to be running, without waiting for it; say whether that took anything.

        TryLater if the manager does not answer, Refused if it knows no such unit.
        """

    def running_for(self, unit: str) -> float | None:
        """Seconds since the process of a unit was started; None if there is none. Raises as `ensure_started`."""

    def restart(self, unit: str) -> None:
        """Ask for a unit that runs to be started anew, without waiting; one that does not run is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A destination, and who passes it on."""

    destination: str
    """As 10.0.0.0/24; `default` for everything."""
    via: str
    """Empty where it is reached directly."""
    ours: bool


class Routes(Protocol):
    """The routes of this machine. TryLater if they cannot be read or changed now."""

    def read(self) -> Sequence[Route]:
        """All of the main table."""

    def change(self, remove: Sequence[Route], add: Sequence[Route]) -> None:
        """Take some of ours away, then make others; a route of somebody else is never replaced."""
