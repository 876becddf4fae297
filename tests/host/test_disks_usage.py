"""Whether a process still uses a volume that stays mounted: real loop devices, real processes, real namespaces."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from clusters.disks import MIB, UUID, an_image, attached, done_here, in_memory, own_mounts, run, wait_until
from protokube.errors import TryLater
from protokube.host import Block, Done, Format, MountVolume
from protokube.host.child.mountinfo import processes
from protokube.host.usage import used_by

SIZE = 32 * MIB
HOLD = "import sys; file = open(sys.argv[1], 'a'); print('ready', flush=True); sys.stdin.read()"
MAP = """
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 4096)
mapped = mmap.mmap(file, 4096)
os.close(file)
# Python keeps a copy of the handle: an etcd that was sent a mapping, or closed its file, has none
for each in os.listdir('/proc/self/fd'):
    if os.path.realpath('/proc/self/fd/' + each) == os.path.realpath(sys.argv[1]):
        os.close(int(each))
print('ready', flush=True)
sys.stdin.read()
"""
THREAD = """
import os, sys, threading, ctypes
file = open(sys.argv[1], 'a')
def stay():
    print('ready', flush=True)
    sys.stdin.read()
threading.Thread(target=stay).start()
ctypes.CDLL(None).pthread_exit(None)
"""
IDLE = 'import sys; print("ready", flush=True); sys.stdin.read()'


@pytest.fixture(scope="module", autouse=True)
def apart() -> Iterator[None]:
    with own_mounts():
        yield


@pytest.fixture
def volume() -> Iterator[tuple[Block, Path]]:
    """An ext4 that is mounted, with a folder for etcd."""
    with in_memory() as folder:
        image = an_image(folder, size=SIZE)
        with attached(image) as block:
            assert done_here(Format(block=block, uuid=UUID)) == Done()
            point = folder / "master-vol-1"
            assert done_here(MountVolume(block=block, point=point)) == Done()
            (point / "var/etcd/data").mkdir(parents=True)
            try:
                yield block, point
            finally:
                run("umount", point)


@contextmanager
def process(*command: str | Path, cwd: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd) as started:
        assert started.stdout is not None
        try:
            assert started.stdout.readline() == b"ready\n"
            yield started
        finally:
            started.kill()


@pytest.fixture
def users(volume: tuple[Block, Path]) -> Iterator[Callable[[], list[str]]]:
    """Asks among all processes but those that have more rights than we have here, as the first of a container may."""
    number = volume[0].number
    with in_memory() as proc:

        def ask() -> list[str]:
            for each in proc.iterdir():
                each.unlink()
            (proc / "self").symlink_to("/proc/self")
            for folder in processes():
                with suppress(PermissionError):
                    with suppress(FileNotFoundError):  # of one whose first thread has ended
                        (folder / "ns/mnt").readlink()
                    (proc / folder.name).symlink_to(folder)
            return used_by(number, proc=proc)

        yield ask


def test_a_volume_that_is_only_mounted_is_used_by_nobody(users: Callable[[], list[str]]) -> None:
    assert users() == []


@pytest.mark.parametrize(
    ("program", "does"),
    [(HOLD, "has open"), (MAP, "has mapped"), (THREAD, "has open")],
    ids=["open", "mapped", "thread"],
)
def test_a_process_that_has_a_file_of_it_is_named_until_it_ends(
    volume: tuple[Block, Path], users: Callable[[], list[str]], program: str, does: str
) -> None:
    _, point = volume
    file = point / "var/etcd/data/0.wal"
    with process(sys.executable, "-c", program, file) as holder:
        (found,) = users()
        assert f"(pid {holder.pid}) {does}" in found
        assert "0.wal" in found
        file.unlink()  # its data vanishes, and it runs on
        (found,) = users()
        assert f"(pid {holder.pid}) {does}" in found
    assert users() == []


def test_a_process_that_works_in_it_uses_it(volume: tuple[Block, Path], users: Callable[[], list[str]]) -> None:
    _, point = volume
    with process(sys.executable, "-c", IDLE, cwd=point / "var") as holder:
        (found,) = users()
        assert f"(pid {holder.pid}) works in {point}/var" in found


def test_a_container_that_has_nothing_open_yet_is_known_by_its_mount(
    volume: tuple[Block, Path], users: Callable[[], list[str]]
) -> None:
    """As a runtime sets it up: the folder of the volume, at another place, in a mount namespace of its own."""
    _, point = volume
    with in_memory() as other:
        script = f"mount --bind {point}/var/etcd/data {other} && umount {point} && exec {sys.executable} -c '{IDLE}'"
        with process("unshare", "--mount", "--propagation=private", "sh", "-c", script) as container:
            found = users()
            assert any(f"(pid {container.pid}) has /var/etcd/data mounted at {other}" in each for each in found), found
        wait_until(lambda: users() == [], "the namespace of a process that ended is left")


def test_a_service_whose_namespace_only_copied_our_mount_does_not_use_it(users: Callable[[], list[str]]) -> None:
    """Else a volume were in use for as long as the machine runs: many services have a namespace of their own."""
    with process("unshare", "--mount", "--propagation=slave", sys.executable, "-c", IDLE):
        assert users() == []


def test_a_process_in_another_namespace_that_has_a_file_open_uses_it(
    volume: tuple[Block, Path], users: Callable[[], list[str]]
) -> None:
    _, point = volume
    with process("unshare", "--mount", sys.executable, "-c", HOLD, point / "var/etcd/data/0.wal") as holder:
        (found,) = users()
        assert f"(pid {holder.pid}) has open" in found


def test_one_that_is_stopped_and_does_nothing_uses_it_all_the_same(
    volume: tuple[Block, Path], users: Callable[[], list[str]]
) -> None:
    _, point = volume
    with process(sys.executable, "-c", HOLD, point / "var/etcd/data/0.wal") as holder:
        os.kill(holder.pid, signal.SIGSTOP)
        assert len(users()) == 1


def test_without_the_right_to_look_at_all_processes_there_is_no_answer(volume: tuple[Block, Path]) -> None:
    """A process of another user: what it has open cannot be seen, so nobody can say that the volume is not in use."""
    block, _ = volume
    script = f"""
import os, sys
sys.path[:0] = {sys.path!r}
from protokube.errors import TryLater
from protokube.host.usage import used_by
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    print(used_by({block.number!r}))
except TryLater as why:
    print(why.message)
"""
    assert "cannot be seen: " in run(sys.executable, "-c", script)


def test_a_proc_that_hides_processes_gives_no_answer(volume: tuple[Block, Path]) -> None:
    block, _ = volume
    script = f"""
import os, subprocess, sys
sys.path[:0] = {sys.path!r}
from protokube.errors import TryLater
from protokube.host.usage import used_by
subprocess.run(["mount", "-o", "remount,hidepid=2", "/proc"], check=True)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    print(used_by({block.number!r}))
except TryLater as why:
    print(why.message)
"""
    inside = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--propagation=private")
    assert "processes may be hidden from us" in run(*inside, sys.executable, "-c", script)


def test_too_many_processes_give_no_answer(volume: tuple[Block, Path]) -> None:
    with pytest.raises(TryLater, match="too many processes"):
        used_by(volume[0].number, seconds=-1)
