"""Files, directories, links and what is gone, below the root of an image."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.nodeup import OURS, a_root, silent
from protokube.errors import Refused
from protokube.nodeup.catalog import KINDS
from protokube.nodeup.changes import Change
from protokube.nodeup.machine import Machine
from protokube.nodeup.placing import draft_of
from protokube.nodeup.values import Directory, File, Gone, Link, Task

OWNER, GROUP = OURS
HOSTS = File(path="/etc/hosts", content=b"127.0.0.1 localhost\n", owner=OWNER, group=GROUP)
KEYS = File(path="/srv/keys/ca.key", content=b"PRIVATE", mode=0o600, secret=True, owner=OWNER, group=GROUP)
FOLDER = Directory(path="/srv/data", mode=0o750, owner=OWNER, group=GROUP)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return a_root(tmp_path)


def look(task: Task, machine: Machine) -> Sequence[Change]:
    return KINDS[type(task)].look(task, machine)


def apply(task: Task, machine: Machine) -> list[str]:
    """Carry one task out; what had to change. Afterwards nothing does."""
    changes = look(task, machine)
    KINDS[type(task)].apply(task, changes, machine, silent)
    assert not look(task, machine)
    return [str(change) for change in changes]


def test_a_file_gets_its_content_mode_and_owner(machine: Machine) -> None:
    assert apply(HOSTS, machine) == ["content: missing -> 20 bytes"]

    path = machine.root / "etc/hosts"
    assert path.read_bytes() == HOSTS.content
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [each.name for each in path.parent.glob(".*")] == []


def test_what_differs_is_told_and_made_right(machine: Machine) -> None:
    path = machine.root / "etc/hosts"
    path.write_bytes(b"10.0.0.1 elsewhere.\n")
    path.chmod(0o600)

    assert apply(HOSTS, machine) == ["content: other 20 bytes -> 20 bytes", "mode: 0o600 -> 0o644"]
    path.write_bytes(b"short")
    assert apply(HOSTS, machine) == ["content: 5 bytes -> 20 bytes"]


def test_a_file_with_other_names_is_replaced_and_they_keep_what_they_had(machine: Machine) -> None:
    other = machine.root / "other"
    other.write_bytes(HOSTS.content)
    other.chmod(0o600)
    (machine.root / "etc/hosts").hardlink_to(other)

    assert apply(HOSTS, machine) == ["mode: 0o600 -> 0o644"]
    assert stat.S_IMODE(other.stat().st_mode) == 0o600


def test_a_file_that_is_kept_is_written_once(machine: Machine) -> None:
    kept, path = replace(HOSTS, keep=True), machine.root / "etc/hosts"
    apply(kept, machine)
    path.write_bytes(b"mine")
    path.chmod(0o640)

    assert not look(kept, machine)
    path.unlink()
    path.symlink_to("/elsewhere")
    assert not look(kept, machine)


def test_directories_above_a_file_are_made_and_those_that_exist_stay_as_they_are(machine: Machine) -> None:
    (machine.root / "srv").mkdir(mode=0o700)

    apply(KEYS, machine)

    modes = {name: stat.S_IMODE((machine.root / name).stat().st_mode) for name in ("srv", "srv/keys")}
    assert modes == {"srv": 0o700, "srv/keys": 0o755 & ~_umask()}


def test_nothing_of_a_secret_is_shown(machine: Machine) -> None:
    shown = apply(KEYS, machine)
    (machine.root / "srv/keys/ca.key").write_bytes(b"SEVENTY")
    shown += apply(KEYS, machine)
    (machine.root / "srv/keys/ca.key").write_bytes(b"LONGER THAN BEFORE")
    shown += apply(KEYS, machine)

    assert shown == [
        "content: missing -> (secret)", "content: (secret) -> (secret)", "content: (secret) -> (secret)"
    ]  # fmt: skip
    assert "PRIVATE" not in repr(KEYS)


class Watch:
    """Sees each change of a mode before it is made. An audit hook cannot be removed, so it is switched off."""

    def __init__(self, draft: Path) -> None:
        self.on, self.draft, self.modes = True, draft, list[int]()
        sys.addaudithook(self)

    def __call__(self, event: str, _: tuple[object, ...]) -> None:
        if self.on and event == "os.chmod":
            self.modes.append(stat.S_IMODE(self.draft.stat().st_mode))


def test_a_draft_of_a_secret_is_private_from_its_first_byte(machine: Machine) -> None:
    (machine.root / "srv/keys").mkdir(parents=True)
    watch = Watch(draft_of(machine.root / "srv/keys/ca.key"))
    old = os.umask(0)
    try:
        apply(replace(KEYS, mode=0o640), machine)
    finally:
        os.umask(old)
        watch.on = False
    assert watch.modes == [0o600]


def test_what_a_killed_run_left_beside_a_file_is_removed_also_if_the_file_is_right(machine: Machine) -> None:
    link, gone = Link(path="/etc/link", target="x"), Gone(path="/etc/old")
    for task in (HOSTS, link, gone, replace(HOSTS, path="/etc/kept", keep=True)):
        path = machine.root / str(task.about)[1:]
        if look(task, machine):
            apply(task, machine)
        draft_of(path).write_bytes(b"half")

        assert apply(task, machine) == ["draft: left by a run that was killed -> none"]
        assert not draft_of(path).exists()


def test_the_draft_of_a_file_with_the_longest_name_fits_too(machine: Machine) -> None:
    for length in (230, 241, 255):
        apply(replace(HOSTS, path=f"/etc/{'n' * length}"), machine)


def other_things(path: Path) -> dict[str, Callable[[], Any]]:
    def bound() -> None:
        os.mknod(path, stat.S_IFSOCK | 0o600)

    return {
        "a directory": path.mkdir,
        "a pipe": lambda: os.mkfifo(path),
        "a socket": bound,
    }


@pytest.mark.parametrize("kind", ["a directory", "a pipe", "a socket"])
@pytest.mark.parametrize("task", [HOSTS, Link(path="/etc/hosts", target="x"), Gone(path="/etc/hosts")])
def test_nothing_of_another_kind_is_replaced_or_removed(machine: Machine, task: Task, kind: str) -> None:
    path = machine.root / "etc/hosts"
    other_things(path)[kind]()
    before = path.lstat()

    for act in (lambda: look(task, machine), lambda: KINDS[type(task)].apply(task, (), machine, silent)):
        with pytest.raises(Refused, match="not replaced") as caught:
            act()
        assert caught.value.saw == kind
    assert path.lstat() == before


def test_a_file_in_the_place_of_a_link_or_directory_stays(machine: Machine) -> None:
    path = machine.root / "srv"
    path.write_bytes(b"data")

    for task in (Link(path="/srv", target="x"), Directory(path="/srv")):
        with pytest.raises(Refused, match="/srv is a file, which is not replaced"):
            look(task, machine)
    assert path.read_bytes() == b"data"


def test_a_link_in_the_place_of_a_file_is_replaced_and_what_it_leads_to_is_not_touched(machine: Machine) -> None:
    (machine.root / "etc/real").write_bytes(b"theirs")
    (machine.root / "etc/hosts").symlink_to("real")

    assert apply(HOSTS, machine) == ["content: a link to real -> 20 bytes"]
    assert (machine.root / "etc/real").read_bytes() == b"theirs"


def test_a_directory_gets_its_mode_and_what_is_in_it_is_not_touched(machine: Machine) -> None:
    assert apply(FOLDER, machine) == [f"directory: missing -> 0o750 {OWNER}:{GROUP}"]
    inside = machine.root / "srv/data/x"
    inside.write_bytes(b"x")
    inside.chmod(0o604)
    (machine.root / "srv/data").chmod(0o777)

    assert apply(FOLDER, machine) == ["mode: 0o777 -> 0o750"]
    assert stat.S_IMODE(inside.stat().st_mode) == 0o604
    apply(replace(FOLDER, path="/srv/tmp", mode=0o1777), machine)
    assert stat.S_IMODE((machine.root / "srv/tmp").stat().st_mode) == 0o1777


def test_a_link_to_a_directory_serves_as_one_but_is_never_changed(machine: Machine) -> None:
    big = machine.root / "big"
    big.mkdir()
    big.chmod(0o750)
    (machine.root / "srv").mkdir()
    (machine.root / "srv/data").symlink_to("/big")

    assert not look(FOLDER, machine)
    big.chmod(0o755)
    with pytest.raises(Refused, match="has other rights and is not changed") as caught:
        look(FOLDER, machine)
    assert (caught.value.saw, caught.value.want) == ("mode 0o755", "mode 0o750")
    big.rmdir()
    with pytest.raises(Refused, match="leads to no directory"):
        look(FOLDER, machine)


def test_a_link_is_made_and_pointed_elsewhere(machine: Machine) -> None:
    link = Link(path="/opt/now", target="v1")

    assert apply(link, machine) == ["target: missing -> v1"]
    assert apply(replace(link, target="v2"), machine) == ["target: v1 -> v2"]
    assert (machine.root / "opt/now").readlink() == Path("v2")


def test_what_is_to_be_gone_is_removed_and_its_absence_is_fine(machine: Machine) -> None:
    path = machine.root / "etc/old"
    path.write_bytes(b"x")

    assert apply(Gone(path="/etc/old"), machine) == ["path: a file -> nothing"]
    path.symlink_to("/dangling")
    assert apply(Gone(path="/etc/old"), machine) == ["path: a link -> nothing"]
    assert not look(Gone(path="/none/of/this"), machine)
    assert not look(Gone(path="/etc/passwd/x"), machine)


def test_links_of_an_image_lead_to_where_the_machine_would_go_and_never_out_of_it(
    machine: Machine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (machine.root / "var").mkdir()
    (machine.root / "run").mkdir()
    (machine.root / "var/run").symlink_to("/run")
    (machine.root / "var/up").symlink_to("../../../../../../etc")
    (machine.root / "var/out").symlink_to(outside)

    for path in ("/var/run/a", "/var/up/b", "/var/out/c"):
        apply(replace(HOSTS, path=path), machine)

    assert (machine.root / "run/a").is_file()
    assert (machine.root / "etc/b").is_file()
    assert list(outside.iterdir()) == []
    assert (machine.root / str(outside)[1:] / "c").is_file()


def test_links_that_lead_in_a_circle_are_refused(machine: Machine) -> None:
    (machine.root / "a").symlink_to("/b")
    (machine.root / "b").symlink_to("/a")

    with pytest.raises(Refused, match="leads in a circle"):
        look(replace(HOSTS, path="/a/x"), machine)


def test_an_owner_that_is_made_later_differs_and_one_that_never_is_is_refused(machine: Machine) -> None:
    (machine.root / "etc/hosts").write_bytes(HOSTS.content)
    (machine.root / "etc/hosts").chmod(0o644)
    file = replace(HOSTS, owner="etcd")

    assert [change.what for change in look(file, machine)] == ["owner"]
    with pytest.raises(Refused, match="there is no user etcd on this machine"):
        KINDS[File].apply(file, look(file, machine), machine, silent)


def _umask() -> int:
    os.umask(old := os.umask(0))
    return old
