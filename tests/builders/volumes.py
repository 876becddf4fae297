"""What tests of volumes share: a volume to ask for, a process that holds a disk, disks that leave no trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from protokube.errors import ProtokubeError
from protokube.local.disk import loops, mounts
from protokube.providers.volumes import Volume

HOLDER = Path(__file__).parents[1] / "host" / "disk_holder.py"
MEBIBYTE = 1024 * 1024
SIZE = 16 * MEBIBYTE


def a_volume(
    name: str = "", *, etcd_cluster: str = "main", member: str = "a", zone: str = "local", size: int = SIZE
) -> Volume:
    """What a test does not care about is filled in."""
    return Volume(
        id=name,
        zone=zone,
        etcd_cluster=etcd_cluster,
        member=member,
        members=("a", "b", "c"),
        size=size,
        made_empty=True,
    )


class Holder:
    """A process in a mount namespace of its own; what it opens it keeps."""

    def __init__(self) -> None:
        command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-S", str(HOLDER)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.hear() == "ready"

    @property
    def pid(self) -> int:
        return self.process.pid

    def tell(self, *order: object) -> None:
        """Without waiting: one that is frozen answers when it is thawed."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def do(self, *order: object) -> str:
        self.tell(*order)
        return self.hear()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self.process.wait()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")


@contextmanager
def nothing_left_behind(folder: Path) -> Iterator[None]:
    """Whatever a test does, no device stays bound to a file in this folder, and nobody keeps it mounted."""
    try:
        yield
    finally:
        end = time.monotonic() + 5
        while (bound := loops.bound_under(folder)) and time.monotonic() < end:
            for mount in mounts.who_has({loop.number for loop in bound}):
                mounts.take_away(mount)
            for loop in bound:
                loops.release(loop)
            time.sleep(0.01)


def format_disk(device: Path) -> None:
    subprocess.run(["mkfs.ext4", "-q", "-E", "nodiscard", str(device)], check=True, capture_output=True)


def check_file_system(image: Path) -> str:
    """What e2fsck has to complain about, without touching it; nothing, if it is clean."""
    ran = subprocess.run(["e2fsck", "-f", "-n", str(image)], capture_output=True, text=True)
    return "" if ran.returncode == 0 else ran.stdout + ran.stderr


def all_at_once(count: int, work: Callable[[int], object]) -> Sequence[object]:
    """The work in as many threads, let go together; what each one returned, or the error it raised."""
    start = threading.Barrier(count)
    results: list[object] = [None] * count

    def run(number: int) -> None:
        start.wait()
        try:
            results[number] = work(number)
        except (ProtokubeError, OSError) as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
