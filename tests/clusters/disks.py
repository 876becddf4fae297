"""Real disks for tests: loop devices over images, some of them served by a program that lies; all gone afterwards."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from protokube.host import Block, Device, Job, Result
from protokube.host.child import work
from protokube.host.devices import Devices
from protokube.host.disks import HostDisks
from protokube.host.jobs import request, result
from protokube.host.mounts import mounts

NEW_MOUNTS, RECURSIVE, PRIVATE, DETACH = 0x20000, 0x4000, 0x40000, 2
LOOP = 7
MIB = 1 << 20
SIZE = 128 * MIB
"""Large enough that a device is sampled and not read whole."""
UUID = "01234567-89ab-cdef-0123-456789abcdef"
OTHER_UUID = "fedcba98-7654-3210-fedc-ba9876543210"
LYING_DISK = Path(__file__).parents[1] / "host" / "lying_disk.py"


def run(*command: str | Path) -> str:
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    return ran.stdout.strip()


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder for images and mount points: flushing a disk that lies in it does not wait for this machine's own."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="protokube-disks-") as folder:
        yield Path(folder)


def an_image(folder: Path, name: str = "vol-1.img", size: int = SIZE) -> Path:
    """A disk that was made empty."""
    image = folder / name
    with image.open("wb") as file:
        file.truncate(size)
    return image


def patch(image: Path, data: dict[int, bytes]) -> int:
    """Write at these places; a negative one counts from the end."""
    with image.open("r+b") as file:
        for position, piece in data.items():
            file.seek(position, os.SEEK_SET if position >= 0 else os.SEEK_END)
            file.write(piece)
    return len(data)


def digest(image: Path) -> str:
    """What is on a disk: its size and every block of it that is not zero."""
    found = hashlib.sha256(str(image.stat().st_size).encode())
    with image.open("rb") as file:
        position = 0
        while position < image.stat().st_size:
            try:
                position = os.lseek(file.fileno(), position, os.SEEK_DATA) // 4096 * 4096
            except OSError:  # no data after this
                break
            block = os.pread(file.fileno(), 4096, position)
            if block.strip(b"\0"):
                found.update(str(position).encode() + block)
            position += 4096
    return found.hexdigest()


@contextmanager
def own_mounts() -> Iterator[None]:
    """A mount namespace for this process alone, and for what it starts meanwhile.

    Tests run side by side, and each namespace that one of them makes copies every mount there is: a volume would stay
    mounted for as long as somebody else's namespace lives. So nobody copies ours, and we keep no copy of theirs.
    """
    assert threading.get_native_id() == os.getpid(), "a thread cannot have mounts of its own and see them in /proc/self"
    libc, folder = ctypes.CDLL(None, use_errno=True), Path.cwd()
    before = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    try:
        assert libc.unshare(NEW_MOUNTS) == 0
        assert libc.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None) == 0
        for mount in reversed(mounts()):
            if mount.number[0] == LOOP:
                libc.umount2(os.fsencode(mount.point), DETACH)
        yield
    finally:
        assert libc.setns(before, NEW_MOUNTS) == 0, os.strerror(ctypes.get_errno())
        os.close(before)
        os.chdir(folder)


@contextmanager
def attached(image: Path, *, inside: int | None = None, options: tuple[str, ...] = ()) -> Iterator[Block]:
    """The image as a device; `inside` is a process whose mount namespace has it."""
    enter = () if inside is None else ("nsenter", f"--target={inside}", "--mount")
    path = Path(run(*enter, "losetup", "--find", "--show", *options, image))
    try:
        block = Devices().find(Device(path=path, serial=None))
        assert block is not None
        yield block
    finally:
        detach(path, image)


def detach(path: Path, image: Path) -> None:
    backing = Path(f"/sys/block/{path.name}/loop/backing_file")

    def is_ours() -> bool:
        try:
            return backing.read_text().strip() == str(image)
        except OSError:
            return False

    if is_ours():
        run("losetup", "--detach", path)
    wait_until(lambda: not is_ours(), f"{path} is left behind: somebody still has it open")


def wait_until(true: Callable[[], object], otherwise: str, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, otherwise
        time.sleep(0.01)


def settle(disks: HostDisks, job: Job, seconds: float = 30) -> Result:
    """Ask for a job, round after round, until there is a result."""
    until = time.monotonic() + seconds
    while (result := disks.run(job)) is None:
        assert time.monotonic() < until, f"{job} does not end"
        time.sleep(0.005)
    return result


def done_here(job: Job, **more: object) -> Result:
    """What the child would do, done in this process: for all but what hangs or is killed."""
    told = {**json.loads(json.dumps(request(job))), "parent": os.getppid(), **more}
    return result(json.dumps(work.answer(told)), 0)


class Liar:
    """A lying disk under a loop device."""

    def __init__(self, process: subprocess.Popen[str], block: Block, image: Path) -> None:
        self.block, self.image = block, image
        self._process = process

    def tell(self, *order: str | int) -> str:
        return tell(self._process, *order)


def tell(process: subprocess.Popen[str], *order: str | int) -> str:
    assert process.stdin is not None
    process.stdin.write(" ".join(map(str, order)) + "\n")
    process.stdin.flush()
    return hear(process)


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    assert said, "the lying disk is dead"
    return said


@contextmanager
def lying(image: Path, options: tuple[str, ...] = ()) -> Iterator[Liar]:
    """Serve the image through FUSE and show it as a device; whatever it was told, it is healed and gone at the end."""
    point = image.parent / "served"
    point.mkdir()
    namespace = ("unshare", "--mount", "--propagation=private", sys.executable)
    with subprocess.Popen(
        [*namespace, str(LYING_DISK), str(image), str(point), image.name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert hear(process) == "ok"
            with attached(point / image.name, inside=process.pid, options=options) as block:
                try:
                    yield Liar(process, block, image)
                finally:
                    tell(process, "heal")
        finally:
            process.kill()
