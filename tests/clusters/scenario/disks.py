"""Disks of a scenario: what is on each volume lives beside the cloud, and only its holder reaches it.

A file system is a real folder on tmpfs, and a mount is a symbolic link to it, so that every line of ours that touches
files is real. When a volume is taken away while it is mounted, the link leads to where every read and write fails.
"""

from __future__ import annotations

import itertools
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from clusters.scenario.edges import HostClock
from protokube.errors import TryLater
from protokube.host import (
    Block,
    Content,
    Device,
    Done,
    Failed,
    FileSystem,
    Format,
    Job,
    Mount,
    MountVolume,
    Probe,
    Probed,
    Result,
    Unmount,
    Unwritable,
    WriteTest,
)
from protokube.host.jobs import is_news

NOWHERE = "x" * 300
"""A name too long for any file system: whatever goes through it is an OSError that nobody takes for `not there`."""
DEADLINE, FRESH = 60.0, 30.0
GIBIBYTE = 2**30


@dataclass
class Platter:
    """What is really on a volume."""

    volume: str
    number: tuple[int, int]
    base: Path
    size: int = GIBIBYTE
    serial: str | None = None
    content: Content = Content.BLANK
    told: str = ""
    uuid: str | None = None
    carried_data: bool = False
    """Whether etcd ever kept data on it; then it may never be formatted, whatever it looks like."""
    formats: list[str] = field(default_factory=list)
    wrongly_formatted: bool = False
    appears: float = 0.0
    """When the device shows up."""
    folders: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    folder: Path | None = None
    """The root of its file system."""
    option: str = ""
    """Among its mount options since an error: `emergency_ro`, `shutdown`. Gone with the next mount."""
    errors: int = 0
    """As ext4 counts them. Gone with the next check."""
    unwritable: str = ""
    """Why the disk takes no write, mounted anew or not; "" if it takes them."""
    broken_on: set[str] = field(default_factory=set)
    """Machines on which it takes none."""
    hangs: bool = False
    free: int = GIBIBYTE // 2

    def mend(self) -> None:
        """What broke from outside is whole again. What the file system shows since then stays until it is mounted."""
        self.unwritable, self.hangs, self.free = "", False, GIBIBYTE // 2
        self.broken_on.clear()

    def breaks_on(self, machine: str) -> str:
        return self.unwritable or ("input/output error" if machine in self.broken_on else "")

    def format(self, uuid: str) -> None:
        self.wrongly_formatted |= self.carried_data
        self.formats.append(uuid)
        self.content, self.uuid = Content.EXT4, uuid
        self.folder = self.base / f"{self.volume}-{next(self.folders)}"
        (self.folder / "lost+found").mkdir(parents=True)

    def wipe(self, content: Content = Content.BLANK) -> None:
        """Somebody wrote zeros, or something else, over all of it."""
        if self.folder is not None:
            shutil.rmtree(self.folder)
        self.content, self.uuid, self.folder = content, None, None

    def probed(self) -> Probed:
        description = self.told or f"{self.content.value}, as the test made it"
        return Probed(content=self.content, description=description, uuid=self.uuid)

    def formattable(self, job: Format) -> bool:
        """What the child of a format proves once more, right before it writes."""
        if self.content is Content.BLANK:
            return True
        return job.again and (self.content is Content.DIRTY or (self.content is Content.EXT4 and self.uuid == job.uuid))


@dataclass
class Platters:
    """Every disk there ever was; one that the cloud just made is blank."""

    base: Path
    by_volume: dict[str, Platter] = field(default_factory=dict)

    def __getitem__(self, volume: str) -> Platter:
        if volume not in self.by_volume:
            number = (7, len(self.by_volume))
            self.by_volume[volume] = Platter(volume=volume, number=number, base=self.base, serial=volume)
        return self.by_volume[volume]

    def numbered(self, number: tuple[int, int]) -> Platter | None:
        return next((each for each in self.by_volume.values() if each.number == number), None)


@dataclass
class Work:
    """A job in a child."""

    began: float
    ends: float
    result: Result | None = None
    ended: float = 0.0
    reported: bool = False
    """Whether its end woke the agent already."""


class MemoryDisks:
    """Implements Disks for one machine; `holder` asks the cloud who can reach a volume."""

    def __init__(self, machine: str, platters: Platters, clock: HostClock, holder: Callable[[str], str | None]) -> None:
        self.machine, self.platters, self.clock, self.holder = machine, platters, clock, holder
        self.table: dict[str, Mount] = {}
        self.jobs: dict[Job, Work] = {}
        self.seconds: Callable[[Job], float] = lambda _job: 0.0
        """How long a job takes; float("inf") hangs until its deadline."""
        self.fails: Callable[[Job], str] = lambda _job: ""
        """Why a job fails; "" if it does not."""
        self.damaged = ""
        """What e2fsck says of every file system, and leaves to a person; "" if it finds nothing."""
        self.mounted_times = 0
        self.stuck = False
        """Children that hang cannot even be killed."""
        self.in_use: Callable[[str], bool] = lambda _volume: False
        """Whether a process of this machine has files open on a volume."""
        self.blind = False
        """Nobody can tell."""

    def reaches(self, volume: str) -> bool:
        return self.holder(volume) == self.machine

    def takes_writes(self, volume: str) -> bool:
        platter = self.platters[volume]
        sound = not (platter.option or platter.breaks_on(self.machine) or platter.hangs) and platter.free > 0
        return sound and self.reaches(volume)

    def find(self, device: Device) -> Block | None:
        self.progress()
        platter = self.platters[device.path.name]
        if not self.reaches(platter.volume) or self.clock.common.seconds < platter.appears:
            return None
        return Block(path=device.path, number=platter.number, size=platter.size, serial=platter.serial)

    def present(self, number: tuple[int, int]) -> bool:
        platter = self.platters.numbered(number)
        return platter is not None and self.reaches(platter.volume)

    def mounts(self) -> Sequence[Mount]:
        self.progress()
        root = Mount(number=(254, 0), point=Path("/"), type="ext4", options=frozenset({"rw"}))
        options = {volume: self.platters[volume].option for volume in self.table}
        shown = [
            replace(mount, options=mount.options | {options[volume]}) if options[volume] else mount
            for volume, mount in self.table.items()
        ]
        return (root, *shown)

    def file_system(self, mount: Mount) -> FileSystem:
        platter = self.platters.numbered(mount.number)
        assert platter is not None
        return FileSystem(errors=platter.errors, free=platter.free, size=platter.size)

    def used_by(self, number: tuple[int, int]) -> Sequence[str]:
        platter = self.platters.numbered(number)
        if self.blind:
            raise TryLater("processes are hidden")
        return ["etcd (pid 12) has open its log"] if platter is not None and self.in_use(platter.volume) else []

    def run(self, job: Job) -> Result | None:
        self.progress()
        work = self.jobs.get(job)
        if work is None:
            now = self.clock.common.seconds
            self.jobs[job] = Work(began=now, ends=now + (math.inf if self._hangs(job) else self.seconds(job)))
            self.progress()
            return None
        if work.result is not None:
            del self.jobs[job]
            return work.result
        if self.stuck and self.clock.common.seconds > work.began + DEADLINE:
            return Failed("stuck, and cannot even be killed", overdue=True)
        return None

    def answer_again(self) -> None:
        """Everything that waited for a disk that hung ends now."""
        for job, work in self.jobs.items():
            if self._hangs(job):
                work.ends = min(work.ends, self.clock.common.seconds)

    def running(self) -> Sequence[tuple[Job, float]]:
        self.progress()
        return tuple((job, self.clock.common.seconds - work.began) for job, work in self.jobs.items())

    def under_way(self) -> list[Job]:
        """Jobs whose children live."""
        self.progress()
        return [job for job, work in self.jobs.items() if work.result is None]

    def uuid_of(self, block: Block) -> str | None:
        platter = self.platters.numbered(block.number)
        return platter.uuid if platter and self.reaches(platter.volume) else None

    def progress(self) -> None:
        """End what has ended by now."""
        now = self.clock.common.seconds
        for job, work in list(self.jobs.items()):
            if work.result is not None:
                if now > work.ended + FRESH:
                    del self.jobs[job]
            elif now >= work.ends:
                work.result, work.ended = self._outcome(job), now
            elif now > work.began + DEADLINE and not self.stuck:
                self._cut_short(job)
                why = f"killed, for it took longer than {DEADLINE:.0f} s"
                work.result, work.ended = Failed(why, killed=True), now

    def wakes(self) -> list[float]:
        """Seconds until a child ends; each end wakes the agent once."""
        now, found = self.clock.common.seconds, []
        for job, work in self.jobs.items():
            if not work.reported and (work.result is None or is_news(job, work.result)):
                found.append(max(0.03, work.ends - now))
                work.reported = work.ends <= now
        return found

    def cut_off(self) -> None:
        """Volumes that were taken away while they were mounted: from now on every access fails."""
        for volume, mount in self.table.items():
            if not self.reaches(volume) and mount.point.readlink().name != NOWHERE:
                mount.point.unlink()
                mount.point.symlink_to(NOWHERE)

    def end_children(self) -> None:
        """They go with the agent that started them."""
        for job, work in self.jobs.items():
            if work.result is None:
                self._cut_short(job)
        self.jobs.clear()

    def lose_everything(self) -> None:
        """The machine went down: no child and no mount survives that."""
        self.end_children()
        for mount in self.table.values():
            mount.point.unlink()
        self.table.clear()

    def _hangs(self, job: Job) -> bool:
        """Whatever waits for the disk waits for ever."""
        number = job.number if isinstance(job, Unmount | WriteTest) else job.block.number
        platter = self.platters.numbered(number)
        return platter is not None and platter.hangs

    def _cut_short(self, job: Job) -> None:
        if isinstance(job, Format):
            platter = self.platters[job.block.path.name]
            if self.reaches(platter.volume) and platter.formattable(job):
                platter.wrongly_formatted |= platter.carried_data
                platter.wipe(Content.DIRTY)

    def _outcome(self, job: Job) -> Result:
        if why := self.fails(job):
            return Failed(why)
        if isinstance(job, Unmount):
            return self._unmount(job)
        if isinstance(job, WriteTest):
            return self._write(job)
        platter = self.platters[job.block.path.name]
        if not self.reaches(platter.volume):
            return (
                Probed(content=Content.UNREADABLE, description="input/output error")
                if isinstance(job, Probe)
                else Failed("input/output error")
            )
        match job:
            case Probe():
                if platter.volume in self.table or self.in_use(platter.volume):
                    return Probed(content=Content.BUSY, description="it is mounted")
                if why := platter.breaks_on(self.machine):
                    return Probed(content=Content.UNREADABLE, description=why)
                return platter.probed()
            case Format(uuid=uuid):
                if platter.volume in self.table or not platter.formattable(job):
                    return Failed(f"not formatted: {platter.probed().description}")
                platter.format(uuid)
                return Done()
            case MountVolume(point=point):
                return self._mount(platter, point)

    def _mount(self, platter: Platter, point: Path) -> Result:
        if platter.content is not Content.EXT4 or platter.volume in self.table:
            return Failed("nothing to mount there")
        if self.in_use(platter.volume):
            return Failed("it is in use")
        if self.damaged:
            return Failed(self.damaged, damaged=True)
        if why := platter.breaks_on(self.machine):
            return Failed(why)
        assert platter.folder is not None
        self.mounted_times += 1
        platter.option, platter.errors = "", 0
        point.parent.mkdir(parents=True, exist_ok=True)
        point.symlink_to(platter.folder)
        self.table[platter.volume] = Mount(
            number=platter.number, point=point, type="ext4", options=frozenset({"rw", "noatime"})
        )
        return Done()

    def _write(self, job: WriteTest) -> Result:
        platter = self.platters.numbered(job.number)
        assert platter is not None
        if not self.reaches(platter.volume):
            return Unwritable(why="input/output error")
        if platter.free == 0:
            return Unwritable(why="no space left on device", full=True)
        why = "read-only file system" if platter.option else platter.breaks_on(self.machine)
        return Unwritable(why=why) if why else Done()

    def _unmount(self, job: Unmount) -> Result:
        """A pod has mounts of its own: they stay when ours goes, for as long as its process does."""
        volume = next((name for name, each in self.table.items() if each.point == job.point), None)
        if volume is not None:
            job.point.unlink()
            del self.table[volume]
        platter = self.platters.numbered(job.number)
        if platter is not None and self.in_use(platter.volume):
            return Failed("still mounted in the mount namespace of process 7")
        return Done()
