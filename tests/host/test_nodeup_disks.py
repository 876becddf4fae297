"""Tasks on disks that are full or read-only, in a chroot, and beside programs that change users: one clear sentence."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from builders.nodeup import DEBIAN, Booted, Heard, a_root, no_commands, silent
from protokube.errors import Refused, TryLater
from protokube.nodeup import accounts
from protokube.nodeup.catalog import KINDS
from protokube.nodeup.changes import Outcome
from protokube.nodeup.commands import MachineCommands
from protokube.nodeup.engine.control import Control
from protokube.nodeup.provision import Place, provision
from protokube.nodeup.values import Directory, File, Link, Sysctl, Task, User


@contextmanager
def mounted(*words: str) -> Iterator[None]:
    subprocess.run(["mount", *words], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", words[-1]], check=True)


def outcomes(root: Path, run: Path, *tasks: Task) -> Sequence[Outcome]:
    return provision(lambda: (DEBIAN, tasks), Place(root=root, run=run), Heard(), Control()).outcomes


def test_a_full_disk_is_told_with_the_path_and_the_next_run_resumes(tmp_path: Path) -> None:
    root = a_root(tmp_path / "root").root
    (root / "srv").mkdir()
    big = File(path="/srv/big", content=bytes(300_000))
    with mounted("-t", "tmpfs", "-o", "size=200k", "tmpfs", str(root / "srv")):
        (failed,) = outcomes(root, tmp_path / "run", big)
        assert failed.why == (
            f"there is no room left for {root}/srv/big (No space left on device); make room on the disk that it is on"
        )
        assert list((root / "srv").iterdir()) == []
        subprocess.run(["mount", "-o", "remount,size=2m", str(root / "srv")], check=True)
        (done,) = outcomes(root, tmp_path / "run", big)
        assert str(done.result) == "changed"


def test_a_read_only_path_is_told_and_the_others_are_written(tmp_path: Path) -> None:
    root = a_root(tmp_path / "root").root
    (root / "usr").mkdir()
    with mounted("-t", "tmpfs", "-o", "ro", "tmpfs", str(root / "usr")):
        file, folder, link, fine = outcomes(
            root, tmp_path / "run", File(path="/usr/file", content=b""), Directory(path="/usr/folder"),
            Link(path="/usr/link", target="x"), File(path="/etc/fine", content=b""),
        )  # fmt: skip

    for each in (file, folder, link):
        assert f"/usr/{each.key.partition('/usr/')[2]} is on a file system that is read-only" in each.why
    assert str(fine.result) == "changed"


def test_a_file_that_is_a_mount_point_is_not_replaced_and_told_as_such(tmp_path: Path) -> None:
    root = a_root(tmp_path / "root").root
    (root / "etc/hosts").write_bytes(b"of the container")
    (tmp_path / "outside").write_bytes(b"of the container")
    with mounted("--bind", str(tmp_path / "outside"), str(root / "etc/hosts")):
        (failed,) = outcomes(root, tmp_path / "run", File(path="/etc/hosts", content=b"ours"))
        assert "/etc/hosts cannot be replaced: it is in use" in failed.why
    assert (tmp_path / "outside").read_bytes() == b"of the container"


def test_an_immutable_file_is_told_as_such(tmp_path: Path) -> None:
    root = a_root(tmp_path / "root").root
    path = root / "etc/fixed"
    path.write_bytes(b"x")
    subprocess.run(["chattr", "+i", str(path)], check=True)
    try:
        (failed,) = outcomes(root, tmp_path / "run", File(path="/etc/fixed", content=b"ours"))
    finally:
        subprocess.run(["chattr", "-i", str(path)], check=True)
    assert "/etc/fixed may not be changed" in failed.why


def test_read_only_parameters_of_a_container_are_for_its_host_and_the_file_is_written(tmp_path: Path) -> None:
    root = a_root(tmp_path).root
    path = root / "proc/sys/vm/overcommit_memory"
    path.parent.mkdir(parents=True)
    path.write_text("0\n")
    container = Booted(facts=replace(DEBIAN, container=True), run=no_commands, root=root)
    task, kind = Sysctl(file="x.conf", values={"vm.overcommit_memory": "1"}), KINDS[Sysctl]
    with mounted("--bind", str(path), str(path)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(path)], check=True)

        with pytest.raises(Refused, match=r"cannot set vm\.overcommit_memory; this is a container") as caught:
            kind.apply(task, kind.look(task, container), container, silent)

        assert caught.value.hint == "there: `sysctl -w vm.overcommit_memory='1'`"
        assert (root / "etc/sysctl.d/x.conf").exists()
        with pytest.raises(Refused, match="its host must do it"):
            kind.look(task, container)


def test_users_are_added_under_the_lock_that_useradd_takes(tmp_path: Path) -> None:
    machine = a_root(tmp_path)
    ready, done = os.pipe(), os.pipe()
    if (pid := os.fork()) == 0:
        handle = os.open(tmp_path / "etc/.pwd.lock", os.O_WRONLY | os.O_CREAT, 0o600)
        fcntl.lockf(handle, fcntl.LOCK_EX)
        os.write(ready[1], b"x")
        os.close(done[1])
        os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    taken = pytest.raises(TryLater, match="another program changes users or groups of this machine")
    with taken, accounts.locked(machine, seconds=0.2):
        pass
    os.close(done[1])
    os.waitpid(pid, 0)

    KINDS[User].apply(User(name="etcd"), (), machine, silent)
    assert accounts.uid_of(machine, "etcd") == 999
    for each in (*ready, done[0]):
        os.close(each)


def test_the_programs_of_the_system_read_what_was_added(tmp_path: Path) -> None:
    machine = a_root(tmp_path)
    KINDS[User].apply(User(name="etcd"), (), machine, silent)

    checked = subprocess.run(["pwck", "-r", "-R", str(tmp_path)], capture_output=True, text=True)
    groups = subprocess.run(["grpck", "-r", "-R", str(tmp_path)], capture_output=True, text=True)

    assert "etcd" not in checked.stderr.replace("user 'etcd': directory '/nonexistent' does not exist", "")
    assert (groups.returncode, groups.stderr) == (0, "")


def test_commands_of_an_image_run_inside_of_it(tmp_path: Path) -> None:
    for program in ("sh", "cat", "pwd"):
        found = shutil.which(program)
        assert found is not None
        libraries = subprocess.run(["ldd", found], capture_output=True, text=True, check=True).stdout.split()
        for each in (f"/bin/{program}", *(word for word in libraries if word.startswith("/"))):
            place = tmp_path / each[1:]
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found if each.startswith("/bin/") else each, place)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/name").write_text("inside\n")

    ran = MachineCommands(tmp_path)(["sh", "-c", "/bin/cat /etc/name; pwd; exit 5"])

    assert (ran.code, ran.output) == (5, "inside\n/\n")
