"""Faults of disks and their file systems: lost, full, read-only, failing, hanging.

The kernel here has no device mapper to inject errors. Instead, the offset of a loop device is set beyond the end of its
image, so that the block layer returns EIO for everything, and later set back.
"""

from __future__ import annotations

import random
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from clusters.broken_disks import fill, show_whole, shut_down
from clusters.real import until
from protokube.errors import ProtokubeError
from protokube.local.disk import loops
from soak.chaos.fault import Fault
from soak.chaos.field import Field, hold_still, kept, let_go_on, send

ABORT, STOP, REMOUNT = "abort", "shutdown", "remount"
FILLER = "filler"


@dataclass(frozen=True, slots=True, kw_only=True)
class LostDisk(Fault):
    """The disk of a member is deleted."""

    kind: ClassVar[str] = "lost-disk"
    alone: ClassVar[bool] = True
    heals: ClassVar[float] = 180.0

    def apply(self, field: Field) -> None:
        field.admin.call("delete_volume", volume=field.volume(self.member)["id"])


class _HealsUnlessRepeated(Fault):
    """A broken disk is remounted, or moved to another host; it is refused the third time within an hour.

    Then the person declares it repaired.
    """

    __slots__ = ()
    causes: ClassVar[tuple[str, ...]] = (r"broke \d+ times within an hour",)

    def mend(self, field: Field) -> None:
        volume = field.volume(self.member)["id"]
        ran = field.cluster.run("etcd", "accept", volume, "--repaired", "--yes", "--cluster", field.cluster.name)
        assert ran.code == 0, ran.err


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOnly(_HealsUnlessRepeated):
    """The file system of a volume aborts, as after a disk error, or is remounted read-only."""

    way: str = ABORT
    kind: ClassVar[str] = "read-only"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 15.0
    alone: ClassVar[bool] = True

    @classmethod
    def draw(cls, chance: random.Random, members: Sequence[str]) -> Self:
        lasts = cls.lasting(chance)
        return cls(member=chance.choice(list(members)), way=chance.choice([ABORT, STOP, REMOUNT]), lasts=lasts)

    def apply(self, field: Field) -> None:
        point = field.until_mounted(self.member)
        if self.way == STOP:
            shut_down(point)
        elif self.way == ABORT:
            ran = self._mount(field, "remount,abort")
            assert ran.returncode == 0, ran.stderr
        else:
            until(lambda: self._is_remounted(field), f"the volume of {self.member} is read-only")

    def _is_remounted(self, field: Field) -> bool:
        """The kernel refuses to remount while a file is open for writing, so etcd is killed first."""
        send(field.etcd_of(field.host_of(self.member)), signal.SIGKILL)
        return self._mount(field, "remount,ro").returncode == 0

    def _mount(self, field: Field, options: str) -> subprocess.CompletedProcess[str]:
        inside = f"/mnt/{field.mount_point(self.member).name}"
        return field.cluster.inside(field.host_of(self.member), "mount", "-o", options, inside)

    def describe(self) -> str:
        return f"{self.kind} {self.member} by {self.way}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IoErrors(_HealsUnlessRepeated):
    """Every read and write of a disk fails for a while."""

    kind: ClassVar[str] = "io-errors"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 15.0
    alone: ClassVar[bool] = True

    def apply(self, field: Field) -> None:
        image = Path(field.volume(self.member)["image"])
        (loop,) = loops.bound(image)
        field.saved[self] = (loop, image.stat().st_size)
        loops.cut(loop)

    def undo(self, field: Field) -> None:
        if self not in field.saved:
            return
        loop, size = field.saved.pop(self)
        if loop.number in [each.number for each in loops.bound(loop.image)]:
            show_whole(loop.path, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class HungDisk(_HealsUnlessRepeated):
    """Every write and every flush of a disk hangs for a while, and then all of them succeed.

    The file system is frozen. A process that writes to it cannot even be killed meanwhile, as with a disk that does not
    respond; and because the tester has it open, it cannot be unmounted either.
    """

    kind: ClassVar[str] = "hung-disk"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 30.0
    alone: ClassVar[bool] = True

    def apply(self, field: Field) -> None:
        field.saved[self] = hold_still(field.until_mounted(self.member))

    def undo(self, field: Field) -> None:
        if self in field.saved:
            let_go_on(field.saved.pop(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Full(Fault):
    """The file system of a volume has no free block for a while."""

    kind: ClassVar[str] = "full"
    shortest: ClassVar[float] = 3.0
    longest: ClassVar[float] = 15.0

    def apply(self, field: Field) -> None:
        def filled() -> bool:
            fill(field.until_mounted(self.member), FILLER)
            return True

        until(filled, f"the volume of {self.member} is filled")

    def undo(self, field: Field) -> None:
        def free() -> bool:
            point = field.mount_point(self.member)
            if not point.is_mount():
                return False
            (point / FILLER).unlink(missing_ok=True)
            return True

        with suppress(ProtokubeError):
            until(free, f"the filler on the volume of {self.member} can be removed")


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoBlank(Fault):
    """With the power off, all but one disk are replaced by blank ones: no quorum is left to heal from."""

    kind: ClassVar[str] = "two-blank"
    alone: ClassVar[bool] = True
    causes: ClassVar[tuple[str, ...]] = (r"turns up blank", r"was lost outside of us")

    def apply(self, field: Field) -> None:
        wiped = sorted({each["member"] for each in field.admin.call("volumes")} - {self.member})
        field.saved[self] = wiped
        field.cluster.power_off()
        try:
            for member in wiped:
                image = Path(field.volume(member)["image"])
                size = image.stat().st_size
                image.rename(kept(image))
                subprocess.run(["truncate", f"--size={size}", image], check=True)
                image.chmod(0o600)
        finally:
            field.cluster.power_on()

    def mend(self, field: Field) -> None:
        field.cluster.power_off()
        try:
            for member in field.saved[self]:
                image = Path(field.volume(member)["image"])
                kept(image).replace(image)
        finally:
            field.cluster.power_on()

    def describe(self) -> str:
        return f"{self.kind}: all disks but that of {self.member}"
