"""Taking a cloud away: whatever was killed before, nothing of it is left, and nothing of anybody else is touched."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from builders.volumes import SIZE, Holder, format_disk, nothing_left_behind
from clusters.daemon import RealCloud, kill, until
from protokube.errors import Refused, TryLater
from protokube.local.base.paths import Paths
from protokube.local.cloud import cleanup
from protokube.local.disk import disks, loops
from protokube.local.host import leftovers, network
from protokube.providers.volumes.local import LocalVolumes


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def a_cloud(stack: ExitStack, folder: Path) -> RealCloud:
    return stack.enter_context(RealCloud(folder)).start()


def with_a_mounted_disk(cloud: RealCloud) -> RealCloud:
    volume = cloud.founder()
    host = cloud.group("master-a")[0]
    LocalVolumes(cloud.client(host)).attach(volume)
    cloud.inside(host, "mkfs.ext4", "-q", f"/dev/pk-{volume}")
    assert cloud.inside(host, "mount", f"/dev/pk-{volume}", "/mnt").returncode == 0
    return cloud


def bare_disk(paths: Paths) -> tuple[Path, Path]:
    """A disk of a cloud that has nothing else, bound to a device."""
    paths.create()
    image = paths.image("vol-0badcafe")
    disks.create(image, SIZE)
    device = Path(f"/dev/loop{disks.attach(image, SIZE)[1]}")
    format_disk(device)
    return image, device


def test_a_living_cloud_goes_and_says_what_went(stack: ExitStack, tmp_path: Path) -> None:
    cloud = with_a_mounted_disk(a_cloud(stack, tmp_path / "dev"))
    before = leftovers.describe(cloud.paths)

    done = cleanup.remove(cloud.paths)

    assert [line.split(":")[0].split(" ")[0] for line in before] == [
        "daemon", "host", "disk", before[3].split(":")[0], "network", "folder",
    ]  # fmt: skip
    assert done[0].startswith("stopped the daemon")
    assert done[1].startswith("killed host master-a-")
    assert done[-1] == f"removed {cloud.paths.root}"
    assert leftovers.describe(cloud.paths) == []
    assert cleanup.remove(cloud.paths) == []


def test_a_cloud_goes_after_everything_was_killed(stack: ExitStack, tmp_path: Path) -> None:
    cloud = with_a_mounted_disk(a_cloud(stack, tmp_path / "dev"))
    cloud.end(signal.SIGKILL)
    for pid in leftovers.inits(cloud.paths).values():
        kill(pid)
    until(lambda: leftovers.processes(cloud.paths) == [])
    assert len(leftovers.devices(cloud.paths)) == 1
    assert leftovers.switch(cloud.paths) is not None

    cleanup.remove(cloud.paths)

    assert leftovers.describe(cloud.paths) == []
    assert not network.switch_path(cloud.paths.switch).exists()


def test_a_cloud_goes_whose_daemon_was_killed_while_it_started_hosts(stack: ExitStack, tmp_path: Path) -> None:
    for delay in (0.0, 0.03, 0.1):
        cloud = a_cloud(stack, tmp_path / f"dev{delay}")
        for name in ("a", "b"):
            cloud.admin.call("set_group", name=name, size=1, template={})
        time.sleep(delay)
        cloud.end(signal.SIGKILL)

        cleanup.remove(cloud.paths)

        time.sleep(0.3)  # nobody is left who could make anything of it again
        assert leftovers.describe(cloud.paths) == []


def test_a_frozen_host_goes_with_its_cloud(stack: ExitStack, tmp_path: Path) -> None:
    cloud = with_a_mounted_disk(a_cloud(stack, tmp_path / "dev"))
    cloud.admin.call("freeze_host", host=cloud.running("master-a")[0]["name"])

    cleanup.remove(cloud.paths)

    assert leftovers.describe(cloud.paths) == []


def test_a_host_whose_disk_is_held_still_goes_with_its_cloud(stack: ExitStack, tmp_path: Path) -> None:
    cloud = with_a_mounted_disk(a_cloud(stack, tmp_path / "dev"))
    host = cloud.running("master-a")[0]
    cloud.end(signal.SIGKILL)  # in the middle of taking the disk away, say
    subprocess.run(["fsfreeze", "--freeze", f"/proc/{host['pid']}/root/mnt"], check=True)
    waiting = subprocess.Popen(
        ["nsenter", f"--target={host['pid']}", "--mount", "--pid", "touch", "/mnt/file"], stderr=subprocess.DEVNULL
    )
    until(lambda: hangs_in_the_kernel(waiting))
    assert waiting.poll() is None

    cleanup.remove(cloud.paths)

    waiting.wait(10)
    assert leftovers.describe(cloud.paths) == []


def hangs_in_the_kernel(entered: subprocess.Popen[bytes]) -> bool:
    """Whether the command that nsenter started waits and cannot be interrupted."""
    children = Path(f"/proc/{entered.pid}/task/{entered.pid}/children").read_text().split()
    return any(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "D" for pid in children)


def test_a_cloud_beside_it_does_not_notice(stack: ExitStack, tmp_path: Path) -> None:
    one, other = (with_a_mounted_disk(a_cloud(stack, tmp_path / name)) for name in ("one", "other"))
    before = leftovers.describe(other.paths)
    host = other.running("master-a")[0]

    cleanup.remove(one.paths)

    assert leftovers.describe(other.paths) == before
    assert other.running("master-a") == [host]
    assert other.inside(host, "touch", "/mnt/file").returncode == 0


def test_a_disk_that_somebody_mounted_by_hand_is_unmounted_there(stack: ExitStack, tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "dev")
    stack.enter_context(nothing_left_behind(tmp_path))
    _, device = bare_disk(paths)
    somebody = Holder()
    stack.callback(somebody.end)
    (tmp_path / "m").mkdir()
    assert somebody.do("mount", str(device), str(tmp_path / "m")) == "ok"

    done = cleanup.remove(paths)

    assert f"unmounted {tmp_path}/m of process {somebody.pid}" in done
    assert leftovers.describe(paths) == []


def test_what_somebody_keeps_open_is_said_and_goes_when_he_lets_go(stack: ExitStack, tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "dev")
    stack.enter_context(nothing_left_behind(tmp_path))
    image, device = bare_disk(paths)
    somebody = Holder()
    stack.callback(somebody.end)
    somebody.do("open_device", "raw", str(device))

    with pytest.raises(TryLater, match="still there") as caught:
        cleanup.remove(paths, patience=0.1)

    assert caught.value.saw == f"{device}: bound to {image}"
    assert not paths.root.exists()
    somebody.end()
    until(lambda: leftovers.describe(paths) == [])


def test_a_folder_that_is_no_clouds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")

    with pytest.raises(Refused, match="is not the state of a local cloud"):
        cleanup.remove(Paths.at(tmp_path))

    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_loop_device_of_somebody_else_is_left_alone(stack: ExitStack, tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "dev")
    stack.enter_context(nothing_left_behind(tmp_path))
    bare_disk(paths)
    theirs = tmp_path / "dev-but-not-ours.img"
    theirs.touch()
    subprocess.run(["truncate", "--size=1M", str(theirs)], check=True)
    subprocess.run(["losetup", "--find", str(theirs)], check=True)

    cleanup.remove(paths)

    assert len(loops.bound(theirs)) == 1
    assert loops.bound_under(paths.root) == []


def test_what_is_mounted_in_the_folder_is_unmounted_and_not_emptied(stack: ExitStack, tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "dev")
    paths.create()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    (paths.store / "linked").symlink_to(precious)
    (paths.store / "bound").mkdir()
    subprocess.run(["mount", "--bind", str(precious), str(paths.store / "bound")], check=True)

    cleanup.remove(paths)

    assert (precious / "thesis.tex").read_text() == "years of work"
    assert not paths.root.exists()


CUT_SHORT = """
import os, sys
from pathlib import Path
from protokube.local.base.paths import Paths
from protokube.local.cloud import cleanup

paths, left = Paths.at(Path(sys.argv[1])), int(sys.argv[2])

def dies(event, arguments):
    global left
    if event in ("os.remove", "os.rmdir"):
        if left == 0:
            os._exit(9)
        left -= 1

sys.addaudithook(dies)
cleanup.remove(paths)
"""


def test_a_folder_whose_removal_was_cut_short_anywhere_is_removed_by_asking_again(tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "dev")
    for steps in range(100):
        paths.create()
        for file in ("cloud.sqlite", "zz", "store/dev/config", "hosts/master-a-1/etc/hosts"):
            (paths.root / file).parent.mkdir(parents=True, exist_ok=True)
            (paths.root / file).touch()
        (paths.root / "linked").symlink_to(paths.store)
        there = sum(1 for _ in paths.root.rglob("*"))

        ran = subprocess.run([sys.executable, "-c", CUT_SHORT, str(paths.root), str(steps)])

        assert paths.root.exists() == (ran.returncode == 9)
        cleanup.remove(paths)
        assert not paths.root.exists()
        if ran.returncode == 0:
            break
    assert steps == there + 2, "each file and folder, the note that it is being removed, and the folder of all"


def test_nobody_holds_the_lock_of_a_cloud_that_never_ran(tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "dev")
    assert leftovers.daemon(paths) is None

    paths.create()
    paths.lock_file.touch()

    assert leftovers.daemon(paths) is None
    assert leftovers.describe(paths) == [f"folder: {paths.root}"]
