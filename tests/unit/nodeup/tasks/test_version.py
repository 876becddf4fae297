"""Versions of the single file: switched by a link, the former one kept, and none removed that runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.assets import a_machine, sha256, tree
from builders.killing import killed_before_change
from protokube.errors import Refused
from protokube.nodeup.machine import Machine
from protokube.nodeup.selfinstall import COMMAND, HOME, Installed, running, superfluous
from protokube.nodeup.tasks import version
from protokube.nodeup.values import Version


def quiet(_: str) -> None:
    """Nobody listens."""


def a_version(folder: Path, number: str) -> Version:
    """A file of this version, and the task that installs it."""
    file = folder / f"protokube-{number}.pyz"
    file.write_bytes(number.encode() * 1000)
    return Version(version=number, sha256=sha256(file.read_bytes()), source=str(file))


def install(wanted: Version, machine: Machine) -> None:
    if changes := version.look(wanted, machine):
        version.apply(wanted, changes, machine, quiet)
    assert version.look(wanted, machine) == ()


def home(root: Path) -> dict[str, str]:
    """What is below /opt/protokube: directories, and where links lead."""
    folder = root / HOME.lstrip("/")
    return {each.name: str(each.readlink()) if each.is_symlink() else "" for each in folder.iterdir()}


def test_the_first_version_is_installed_and_the_command_leads_to_it(tmp_path: Path) -> None:
    wanted = a_version(tmp_path, "0.9.0")

    install(wanted, a_machine(tmp_path / "root"))

    assert home(tmp_path / "root") == {wanted.name: "", "current": wanted.name}
    assert (tmp_path / "root/usr/local/bin/protokube").readlink() == Path("/opt/protokube/current/protokube")
    place = tmp_path / f"root/opt/protokube/{wanted.name}/protokube"
    assert place.read_bytes() == b"0.9.0" * 1000
    assert place.stat().st_mode & 0o7777 == 0o755


def test_a_second_run_writes_nothing(tmp_path: Path) -> None:
    wanted, machine = a_version(tmp_path, "0.9.0"), a_machine(tmp_path / "root")
    install(wanted, machine)
    before = tree(tmp_path / "root")

    install(wanted, machine)

    assert tree(tmp_path / "root") == before


def test_exactly_the_former_version_is_kept(tmp_path: Path) -> None:
    machine = a_machine(tmp_path / "root")
    one, two, three = (a_version(tmp_path, number) for number in ("1.0", "1.1", "1.2"))
    for each in (one, two, three):
        install(each, machine)

    assert home(tmp_path / "root") == {two.name: "", three.name: "", "current": three.name, "former": two.name}
    install(two, machine)
    assert home(tmp_path / "root") == {two.name: "", three.name: "", "current": two.name, "former": three.name}


def test_a_version_of_the_same_number_with_other_content_is_another_one(tmp_path: Path) -> None:
    machine, one = a_machine(tmp_path / "root"), a_version(tmp_path, "1.0")
    install(one, machine)
    file = tmp_path / "other.pyz"
    file.write_bytes(b"built again")
    other = Version(version="1.0", sha256=sha256(b"built again"), source=str(file))

    install(other, machine)

    assert home(tmp_path / "root") == {one.name: "", other.name: "", "current": other.name, "former": one.name}


def test_a_file_that_is_not_the_one_to_install_is_refused(tmp_path: Path) -> None:
    wanted = a_version(tmp_path, "1.0")
    Path(wanted.source).write_bytes(b"other")

    with pytest.raises(Refused) as raised:
        install(wanted, a_machine(tmp_path / "root"))

    assert raised.value.message == f"{wanted.source} is not the file to install"
    assert sha256(b"other") in raised.value.saw
    assert wanted.sha256 in raised.value.want
    assert not (tmp_path / "root/opt/protokube/current").exists()


def test_a_damaged_version_is_installed_again(tmp_path: Path) -> None:
    wanted, machine = a_version(tmp_path, "1.0"), a_machine(tmp_path / "root")
    install(wanted, machine)
    place = tmp_path / f"root/opt/protokube/{wanted.name}/protokube"
    place.write_bytes(b"")

    install(wanted, machine)

    assert place.read_bytes() == b"1.0" * 1000


@pytest.mark.parametrize("make", [lambda path: path.write_text("theirs"), lambda path: path.symlink_to("/usr/bin/x")])
def test_a_command_of_this_name_that_is_not_ours_is_left_as_it_is(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "root/usr/local/bin/protokube"
    path.parent.mkdir(parents=True)
    make(path)
    before = tree(tmp_path / "root")

    with pytest.raises(Refused, match=COMMAND):
        version.look(a_version(tmp_path, "1.0"), a_machine(tmp_path / "root"))
    assert tree(tmp_path / "root") == before


def test_what_is_not_a_version_below_its_folder_stays(tmp_path: Path) -> None:
    machine = a_machine(tmp_path / "root")
    mine = tmp_path / "root/opt/protokube/mine"
    with_more = tmp_path / "root/opt/protokube/0.1-0123456789ab"
    for folder in (mine, with_more):
        folder.mkdir(parents=True)
        (folder / "notes").write_text("notes")
    for number in ("1.0", "1.1", "1.2"):
        wanted = a_version(tmp_path, number)
        version.apply(wanted, (), machine, quiet)

    assert (mine / "notes").exists()
    assert (with_more / "notes").exists()


@pytest.mark.parametrize("at", range(30))
def test_killed_before_any_change_of_the_disk_the_old_or_the_new_version_is_in_use(tmp_path: Path, at: int) -> None:
    machine = a_machine(tmp_path / "root")
    versions = [a_version(tmp_path, number) for number in ("1.0", "1.1", "1.2")]
    for each in versions[:2]:
        install(each, machine)
    with killed_before_change(at) as changes:
        version.apply(versions[2], (), machine, quiet)

    assert len(changes) <= 30
    found = home(tmp_path / "root")
    assert found["current"] in (versions[1].name, versions[2].name)
    assert (tmp_path / f"root/opt/protokube/{found['current']}/protokube").read_bytes() in (
        b"1.1" * 1000,
        b"1.2" * 1000,
    )
    install(versions[2], machine)
    names = [each.name for each in versions]
    assert home(tmp_path / "root") == {names[1]: "", names[2]: "", "current": names[2], "former": names[1]}


NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(versions=st.frozensets(NAMES), current=NAMES, former=NAMES, wanted=NAMES, runs=st.none() | st.frozensets(NAMES))
def test_the_wanted_the_former_and_running_versions_are_never_superfluous(
    versions: frozenset[str], current: str, former: str, wanted: str, runs: frozenset[str] | None
) -> None:
    gone = superfluous(Installed(versions=versions, current=current, former=former), wanted, runs)

    kept = {wanted, former if current == wanted else current, *(runs or ())}
    assert set(gone) == (versions - kept if runs is not None else set())


def a_process(proc: Path, pid: int, *words: str, began: float = 100.0) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "cmdline").write_bytes("\0".join([*words, ""]).encode())
    ticks = int(began * os.sysconf("SC_CLK_TCK"))
    fields = ["S", *["0"] * 18, str(ticks), "0"]
    (folder / "stat").write_text(f"{pid} (python3) {' '.join(fields)}")
    (proc / "uptime").write_text("1000.00 1000.00\n")


def test_processes_show_which_versions_run(tmp_path: Path) -> None:
    a_process(tmp_path, 1, "/sbin/init")
    a_process(tmp_path, 2, "python3", "/opt/protokube/1.0-0123456789ab/protokube", "agent")
    a_process(tmp_path, 3, "/usr/bin/python3", "/usr/local/bin/protokube", "agent", began=900.0)

    assert running(4800.0, tmp_path, lambda: 5000.0) == frozenset({"1.0-0123456789ab"})
    assert running(4950.0, tmp_path, lambda: 5000.0) is None
