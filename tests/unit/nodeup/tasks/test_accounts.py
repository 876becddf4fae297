"""Users and groups, in the files of a root."""

from __future__ import annotations

import pwd
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from builders.nodeup import DEBIAN, Booted, a_root, no_commands, silent
from protokube.errors import Refused
from protokube.nodeup.catalog import KINDS
from protokube.nodeup.machine import Machine
from protokube.nodeup.tasks import user
from protokube.nodeup.values import Group, Task, User

ETCD = User(name="etcd", home="/var/lib/etcd")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return a_root(tmp_path)


def apply(task: Task, machine: Machine) -> list[str]:
    kind = KINDS[type(task)]
    changes = kind.look(task, machine)
    kind.apply(task, changes, machine, silent)
    assert not kind.look(task, machine)
    return [str(change) for change in changes]


def last_lines(machine: Machine, *names: str) -> Sequence[str]:
    return [(machine.root / "etc" / name).read_text().splitlines()[-1] for name in names]


def test_a_user_gets_the_highest_free_id_of_the_system_a_group_of_its_own_and_no_password(machine: Machine) -> None:
    assert apply(ETCD, machine) == ["user: missing -> any id"]

    assert last_lines(machine, "passwd", "group", "shadow", "gshadow") == [
        "etcd:x:999:999::/var/lib/etcd:/usr/sbin/nologin", "etcd:x:999:", "etcd:!*:::::::", "etcd:!*::"
    ]  # fmt: skip
    assert apply(User(name="other"), machine)
    assert last_lines(machine, "passwd") == ["other:x:998:998::/nonexistent:/usr/sbin/nologin"]


def test_a_stated_id_and_group_are_used(machine: Machine) -> None:
    apply(Group(name="ssl", gid=150), machine)
    apply(User(name="etcd", uid=333, group="ssl"), machine)

    assert last_lines(machine, "passwd", "group") == ["etcd:x:333:150::/nonexistent:/usr/sbin/nologin", "ssl:x:150:"]


def test_files_of_passwords_keep_their_modes_and_systems_without_them_get_none(machine: Machine) -> None:
    (machine.root / "etc/gshadow").unlink()

    apply(ETCD, machine)

    assert stat.S_IMODE((machine.root / "etc/shadow").stat().st_mode) == 0o640
    assert not (machine.root / "etc/gshadow").exists()


def test_one_that_exists_with_the_same_values_is_used(machine: Machine) -> None:
    with (machine.root / "etc/passwd").open("a") as file:
        file.write("etcd:x:101:65534:etcd,,,:/var/lib/etcd:/usr/sbin/nologin\n")

    assert not KINDS[User].look(ETCD, machine)
    assert not KINDS[User].look(User(name="etcd", uid=101, group="nogroup", home="/var/lib/etcd"), machine)


def test_one_with_other_values_is_refused_and_stays(machine: Machine) -> None:
    with (machine.root / "etc/passwd").open("a") as file:
        file.write("etcd:x:101:65534::/home/etcd:/bin/sh\n")
    before = (machine.root / "etc/passwd").read_bytes()

    with pytest.raises(Refused, match="the user etcd exists with other values") as caught:
        KINDS[User].look(User(name="etcd", uid=5, group="root", home="/x"), machine)
    assert caught.value.saw == "id 101, group nogroup, home /home/etcd, shell /bin/sh"
    assert caught.value.want == "id 5, group root, home /x, shell /usr/sbin/nologin"
    with pytest.raises(Refused, match="the group nogroup exists with another id"):
        KINDS[Group].look(Group(name="nogroup", gid=7), machine)
    assert (machine.root / "etc/passwd").read_bytes() == before


def test_a_taken_id_and_a_missing_group_are_refused_and_nothing_is_written(machine: Machine) -> None:
    before = {each.name: each.read_bytes() for each in (machine.root / "etc").iterdir()}

    for task, match in (
        (User(name="etcd", uid=65534), "the id 65534 of the user etcd is taken"),
        (User(name="etcd", group="none"), "there is no group none"),
        (Group(name="ssl", gid=0), "the id 0 of the group ssl is taken"),
    ):
        with pytest.raises(Refused, match=match):
            KINDS[type(task)].apply(task, (), machine, silent)
    assert {each.name: each.read_bytes() for each in (machine.root / "etc").iterdir() if each.name[0] != "."} == before


def test_entries_are_added_before_lines_of_a_directory_service(machine: Machine) -> None:
    with (machine.root / "etc/group").open("a") as file:
        file.write("+:::\n")

    apply(Group(name="ssl"), machine)

    assert (machine.root / "etc/group").read_text().splitlines()[-2:] == ["ssl:x:999:", "+:::"]


@pytest.mark.parametrize("written", [1, 2, 3])
def test_a_run_that_goes_on_after_a_kill_makes_the_same_user(tmp_path: Path, written: int) -> None:
    whole, killed = a_root(tmp_path / "whole"), a_root(tmp_path / "killed")
    apply(ETCD, whole)
    in_their_order = ("gshadow", "group", "shadow", "passwd")
    for name in in_their_order[:written]:
        (killed.root / "etc" / name).write_bytes((whole.root / "etc" / name).read_bytes())

    assert apply(ETCD, killed) == ["user: missing -> any id"]
    for name in in_their_order:
        assert (killed.root / "etc" / name).read_bytes() == (whole.root / "etc" / name).read_bytes()


def test_a_broken_entry_is_told_with_what_repairs_it(machine: Machine) -> None:
    with (machine.root / "etc/passwd").open("a") as file:
        file.write("broken:x:none:0\n")

    with pytest.raises(Refused, match="has an entry that is none") as caught:
        KINDS[User].apply(ETCD, (), machine, silent)
    assert caught.value.saw == "the entry of broken"


@pytest.mark.parametrize("home", ["/x\nroot2:x:0:0::/:/bin/sh", "/a:b", "/a\0b"])
def test_no_value_becomes_another_entry_or_another_field(tmp_path: Path, home: str) -> None:
    machine = a_root(tmp_path)
    before = (tmp_path / "etc/passwd").read_bytes()
    wanted = User(name="web", home=home)

    with pytest.raises(Refused, match="cannot be part of an entry in /etc/passwd"):
        user.apply(wanted, user.look(wanted, machine), machine, silent)

    assert (tmp_path / "etc/passwd").read_bytes() == before


def test_a_user_of_a_directory_service_is_not_hidden_by_one_of_ours(tmp_path: Path) -> None:
    """The accounts of this machine stand for it: they are not in the files below the folder."""
    root = a_root(tmp_path).root
    machine = Booted(facts=DEBIAN, run=no_commands, root=root)
    theirs = pwd.getpwnam("daemon")

    with pytest.raises(Refused, match="the user daemon exists with other values") as refused:
        user.look(User(name="daemon", home="/var/lib/etcd", shell=theirs.pw_shell), machine)

    assert (refused.value.saw, refused.value.want) == (f"home {theirs.pw_dir}", "home /var/lib/etcd")
    same = User(name="daemon", uid=theirs.pw_uid, home=theirs.pw_dir, shell=theirs.pw_shell)
    assert user.look(same, machine) == ()
    assert user.look(same, a_root(tmp_path)) != ()  # an image has no directory service
