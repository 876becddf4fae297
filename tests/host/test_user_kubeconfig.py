"""Under sudo, the kubeconfig of the user who typed it: read and written with that user's rights, whatever lies there.

`nobody` stands for that user; what sudo would tell is in the environment of the child.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from builders.command import process
from builders.kubeconfigs import a_kubeconfig, an_access, marks
from protokube.errors import Refused
from protokube.local.base.paths import Paths
from protokube.local.contexts import child, record, user_kubeconfig
from protokube.local.contexts.person import Person, files_of, who_typed
from protokube.local.contexts.user_kubeconfig import Place, owner_of

UID, GID, GROUP = 65534, 65534, 54321
ROOT = Person(uid=0, gid=0, groups=(0,), home="/root", name="root")


@pytest.fixture
def home() -> Iterator[Path]:
    """A home folder of `nobody`. Not in `tmp_path`: pytest closes the folders above it for everybody else."""
    with tempfile.TemporaryDirectory(dir="/tmp") as top:
        Path(top).chmod(0o755)
        folder = Path(top) / "home"
        (folder / ".kube").mkdir(parents=True)
        for each in (folder, folder / ".kube"):
            os.chown(each, UID, GID)
        yield folder


def jane(home: Path) -> Person:
    return Person(uid=UID, gid=GID, groups=(GROUP,), home=str(home), name="jane")


def place(home: Path) -> Place:
    environ = {"SUDO_UID": str(UID), "SUDO_COMMAND": "/usr/bin/protokube up", "HOME": "/root"}
    person = who_typed(environ, 0, lambda _uid: jane(home))
    return Place(person=person, paths=files_of(person, environ, "/"))


def merge(home: Path) -> Path:
    user_kubeconfig.merge(place(home), an_access(), switch=True, patience=0.2)
    return home / ".kube" / "config"


def test_the_file_belongs_to_the_user_and_to_nobody_else(home: Path) -> None:
    status = merge(home).stat()

    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (UID, GID, 0o600)
    assert [each.name for each in (home / ".kube").iterdir()] == ["config"]


def test_a_folder_that_is_missing_is_made_by_the_user(home: Path) -> None:
    (home / ".kube").rmdir()
    merge(home)

    assert ((home / ".kube").stat().st_uid, stat.S_IMODE((home / ".kube").stat().st_mode)) == (UID, 0o700)


def test_the_child_has_the_ids_and_groups_of_the_user_and_cannot_go_back(home: Path) -> None:
    def look() -> list[object]:
        try:
            os.setresuid(0, 0, 0)
        except PermissionError:
            return [os.getresuid(), os.getresgid(), os.getgroups()]
        return []

    assert child.as_person(jane(home), look) == [[UID] * 3, [GID] * 3, [GROUP]]


def test_a_link_to_a_file_of_root_is_neither_read_nor_replaced(home: Path) -> None:
    secret = home.parent / "secret"
    secret.write_bytes(a_kubeconfig("prod", current="prod"))
    secret.chmod(0o600)
    (home / ".kube" / "config").symlink_to(secret)

    for mode in (0o600, 0o644, 0o666):
        secret.chmod(mode)
        with pytest.raises(Refused, match="cannot use"):
            merge(home)

    assert secret.read_bytes() == a_kubeconfig("prod", current="prod")
    assert sorted(home.parent.iterdir()) == [home, secret]


def test_a_file_of_root_in_the_users_folder_is_left_with_what_to_do(home: Path) -> None:
    """As an earlier `sudo kubectl` left it."""
    file = home / ".kube" / "config"
    file.write_bytes(a_kubeconfig("prod", current="prod"))
    file.chmod(0o644)

    with pytest.raises(Refused, match="belongs to user 0") as refused:
        merge(home)

    assert refused.value.hint == f"sudo chown $USER: {file}"
    assert file.read_bytes() == a_kubeconfig("prod", current="prod")
    assert [each.name for each in file.parent.iterdir()] == ["config"]


def test_a_folder_that_leads_to_one_of_root_gets_no_file(home: Path) -> None:
    etc = home.parent / "etc"
    etc.mkdir()
    (home / ".kube").rmdir()
    (home / ".kube").symlink_to(etc)

    with pytest.raises(Refused):
        merge(home)

    assert list(etc.iterdir()) == []


def test_root_itself_does_not_write_where_a_user_could_exchange_the_file(home: Path) -> None:
    file = home / ".kube" / "config"
    with pytest.raises(Refused, match="root does not write"):
        user_kubeconfig.merge(Place(person=ROOT, paths=(str(file),)), an_access(), switch=True)

    assert list((home / ".kube").iterdir()) == []


def test_down_by_root_takes_out_what_up_merged_for_the_user(home: Path, tmp_path: Path) -> None:
    paths = Paths.at(tmp_path / "state" / "dev")
    paths.create()
    paths.client.mkdir()
    (home / ".kube" / "config").write_bytes(a_kubeconfig("prod", current="prod"))
    os.chown(home / ".kube" / "config", UID, GID)
    record.add(paths, place(home))
    record.add(paths, place(home))
    assert stat.S_IMODE((paths.client / record.FILE).stat().st_mode) == 0o600
    assert len(record.read(paths, lambda _uid: None)) == 1
    file = home / ".kube" / "config"
    access = an_access(owner=owner_of(str(paths.root)))
    user_kubeconfig.merge(place(home), access, switch=True)
    assert marks([file.read_bytes()]) == 3

    said = process("down", "--cluster", "dev", env={"PROTOKUBE_STATE": str(paths.root.parent)})

    assert said.code == 0, said.err
    assert "dev: removed the context protokube-dev, prod is current again, removed /" in said.out
    assert not paths.root.exists()
    assert yaml.safe_load(file.read_text()) == yaml.safe_load(a_kubeconfig("prod", current="prod"))
    assert file.stat().st_uid == UID
