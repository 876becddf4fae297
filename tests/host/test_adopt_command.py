"""`protokube etcd adopt`, on a volume that a host in a mount namespace of its own has mounted and refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builders.original import lay_out
from builders.view import CLUSTER, FakeCloud, ShortFolder, a_generation, a_view, but, cloud_rows, write_state
from clusters.disks import own_mounts
from protokube.agent.volume.mounted_volumes import data_of, point_of, read_identity
from protokube.cli.main import run
from protokube.errors import ExitCode
from protokube.local.base.paths import Paths
from protokube.members.generation import decode
from protokube.members.identity import Identity
from protokube.members.start_values import Data
from protokube.store import layout
from protokube.store.file import FileStore

VOLUME = "vol-aaaa"
INSIDE = f"""
mount -t tmpfs none /mnt && mkdir {point_of(VOLUME)} && mount -o loop "$1" {point_of(VOLUME)} && echo ready
exec sleep 600
"""


def shell(*command: str | Path) -> None:
    subprocess.run([str(each) for each in command], check=True, capture_output=True)


@dataclass
class Holder:
    """A process that stands for a host: nobody outside sees its mount."""

    process: subprocess.Popen[bytes]

    @property
    def point(self) -> Path:
        return Path(f"/proc/{self.process.pid}/root{point_of(VOLUME)}")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A volume that the original left."""
    made, point = tmp_path / f"{VOLUME}.img", tmp_path / "mnt"
    with made.open("wb") as file:
        file.truncate(32 * 1024 * 1024)
    shell("mkfs.ext4", "-q", "-F", made)
    point.mkdir()
    with own_mounts():  # somebody else's namespace that copied the mount would keep the loop device
        shell("mount", "-o", "loop", made, point)
        try:
            lay_out(point)
        finally:
            shell("umount", point)
    return made


@pytest.fixture
def holder(image: Path) -> Iterator[Holder]:
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", INSIDE, "sh", str(image)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield Holder(process)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        deadline = time.monotonic() + 10
        while str(image) in subprocess.run(["losetup", "-a"], capture_output=True, text=True).stdout:
            assert time.monotonic() < deadline, "the loop device stays"
            time.sleep(0.05)


@pytest.fixture
def cluster(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Paths]:
    """A cloud that says that this process is the host that holds the volume, and that it was never marked."""
    view = a_view(generations={"main": a_generation(open=True)})
    view = a_view(generations=view.generations, disks=but(view.disks, 0, mark="", epoch=0))
    rows: dict[str, Any] = cloud_rows(view)
    rows["hosts"][0] |= {"pid": holder.process.pid, "started": 1}
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        paths = write_state(folder, view)
        with FakeCloud(paths.admin_socket, rows):
            yield paths


def called(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(["etcd", "adopt", VOLUME, *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def record(paths: Paths) -> bool:
    found = decode(FileStore(paths.store).read(layout.etcd_generation(CLUSTER, "main")).data)
    assert found is not None
    return found.open


def test_without_yes_what_was_found_is_shown_and_nothing_is_written(
    cluster: Paths, holder: Holder, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = called(capsys)

    assert (code, err) == (ExitCode.OK, "")
    assert out.startswith(f"on {VOLUME}:\n  data      var/etcd/data, 1 write-ahead log\n")
    assert out.endswith(f"it can become main/a of {CLUSTER}\nhint: --yes adopts it\n")
    assert read_identity(holder.point) is None
    assert record(cluster)


def test_with_yes_it_has_an_identity_and_creation_is_closed(
    cluster: Paths, holder: Holder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert data_of(holder.point, "/var/etcd/data", None) is Data.ORIGINAL
    code, out, err = called(capsys, "--yes")

    assert (code, err) == (ExitCode.OK, "")
    assert out.endswith(f"wrote protokube.json on {VOLUME}\n")
    identity = read_identity(holder.point)
    assert isinstance(identity, Identity)
    assert (identity.cluster, identity.member, identity.volume) == (CLUSTER, "a", VOLUME)
    assert data_of(holder.point, "/var/etcd/data", identity) is Data.PRESENT
    assert not record(cluster)


def test_asked_twice_the_second_time_there_is_nothing_to_do(
    cluster: Paths, holder: Holder, capsys: pytest.CaptureFixture[str]
) -> None:
    called(capsys, "--yes")
    before = (holder.point / "protokube.json").stat().st_mtime_ns
    code, out, _ = called(capsys, "--yes")

    assert code == ExitCode.OK
    assert "it is adopted already: epoch 0, generation g1" in out
    assert (holder.point / "protokube.json").stat().st_mtime_ns == before


def test_the_same_as_data(cluster: Paths, holder: Holder, capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(called(capsys, "-o", "json")[1])
    done = json.loads(called(capsys, "--yes", "-o", "json")[1])

    assert (shown["adopted"], shown["done"]) == (False, [])
    assert (done["adopted"], len(done["done"])) == (True, 2)
    assert done["logs"] == {"data": 1}


def test_a_manifest_of_another_member_is_refused_and_nothing_is_written(
    cluster: Paths, holder: Holder, capsys: pytest.CaptureFixture[str]
) -> None:
    file = holder.point / "k8s.io/manifests/etcd.manifest"
    file.write_text(file.read_text().replace("etcd-a", "etcd-b"))
    code, out, _ = called(capsys, "--yes")

    assert code == ExitCode.REFUSED
    assert f"it cannot be adopted: the manifest on {VOLUME} is that of etcd-b, its tags say etcd-a\n" in out
    assert read_identity(holder.point) is None
    assert record(cluster)


def test_a_holder_that_is_gone_has_nothing_mounted(
    cluster: Paths, holder: Holder, capsys: pytest.CaptureFixture[str]
) -> None:
    os.kill(holder.process.pid, signal.SIGKILL)
    holder.process.wait()
    code, out, err = called(capsys, "--yes")

    assert (code, out) == (ExitCode.TRY_LATER, "")
    assert f"{VOLUME} is not mounted on master-0 yet" in err
