"""Programs out of assets: atomic, of exactly this mode, and only what the archive may hold."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from builders.assets import DATA, a_file, a_machine, an_archive, member, of_files, sha256, tree
from builders.killing import before_opening, killed_before_change
from protokube.errors import Refused
from protokube.nodeup.assets import cache
from protokube.nodeup.assets.records import Record, stamp, write_record
from protokube.nodeup.assets.unpack import MOST_MEMBERS
from protokube.nodeup.machine import Machine
from protokube.nodeup.tasks import installed
from protokube.nodeup.values import Installed

KUBELET = Installed(asset="kubelet", path="/usr/local/bin/kubelet")
PLUGINS = {"./bridge": b"bridge" * 50_000, "./host-local": b"host-local", "./README.md": b"read"}
CNI = Installed(asset="cni", path="/opt/cni/bin", member="*")


def quiet(_: str) -> None:
    """Nobody listens."""


def with_archive(root: Path, data: bytes) -> Machine:
    return a_machine(root, a_file(root.parent / "cni.tgz", data, "cni"))


def apply(wanted: Installed, machine: Machine) -> None:
    if changes := installed.look(wanted, machine):
        installed.apply(wanted, changes, machine, quiet)
    assert installed.look(wanted, machine) == ()


def unsafe(tmp_path: Path, data: bytes, wanted: Installed = CNI) -> str:
    """What is said of an archive that is refused; then nothing was installed."""
    machine = with_archive(tmp_path / "root", data)
    with pytest.raises(Refused) as raised:
        apply(wanted, machine)
    assert not [each for each in tree(tmp_path / "root") if each.startswith("opt") and "." in each.rpartition("/")[2]]
    assert [each for each in tree(tmp_path / "root") if each.startswith("opt/cni/bin/")] == []
    assert raised.value.message in ("refusing to unpack cni", "cannot unpack cni", f"cni has no {wanted.member}")
    return raised.value.saw


def test_a_program_is_installed_with_its_mode_and_a_second_run_writes_nothing(tmp_path: Path) -> None:
    machine = a_machine(tmp_path / "root", a_file(tmp_path / "kubelet"))
    assert [str(each) for each in installed.look(KUBELET, machine)] == [
        f"content of /usr/local/bin/kubelet: no file -> sha256 {sha256(DATA)}"
    ]

    apply(KUBELET, machine)

    place = tmp_path / "root/usr/local/bin/kubelet"
    assert place.read_bytes() == DATA
    assert place.stat().st_mode & 0o7777 == 0o755
    before = tree(tmp_path / "root")
    apply(KUBELET, machine)
    assert tree(tmp_path / "root") == before


def test_bytes_that_change_after_they_were_checked_are_not_installed(tmp_path: Path) -> None:
    machine = a_machine(tmp_path / "root", a_file(tmp_path / "kubelet"))
    cached = machine.path(cache.place(machine, machine.assets["kubelet"]))

    with (
        before_opening(".kubelet.protokube-new", lambda: cached.write_bytes(b"wrong")),
        pytest.raises(Refused, match="kubelet changed meanwhile"),
    ):
        installed.apply(KUBELET, (), machine, quiet)

    assert list((tmp_path / "root/usr/local/bin").iterdir()) == []


def test_a_record_of_another_program_does_not_vouch_for_it(tmp_path: Path) -> None:
    machine = a_machine(tmp_path / "root", a_file(tmp_path / "kubelet"))
    apply(KUBELET, machine)
    place = tmp_path / "root/usr/local/bin/kubelet"
    place.write_bytes(b"wrong")
    files = {KUBELET.path: stamp(place, sha256(b"wrong"))}
    write_record(machine, Record(key=KUBELET.key, source=sha256(DATA), files=files, notes={}))

    assert [each.what for each in installed.look(KUBELET, machine)] == ["content of /usr/local/bin/kubelet"]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_all_members_of_an_archive_are_installed_by_their_base_names(tmp_path: Path, mode: str) -> None:
    machine = with_archive(tmp_path / "root", of_files(PLUGINS, mode))

    apply(CNI, machine)

    folder = tmp_path / "root/opt/cni/bin"
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == {
        name.removeprefix("./"): data for name, data in PLUGINS.items()
    }
    before = tree(tmp_path / "root")
    apply(CNI, machine)
    assert tree(tmp_path / "root") == before


def test_one_member_or_those_of_one_folder_are_installed_and_no_others(tmp_path: Path) -> None:
    files = {"bin/containerd": b"c", "bin/ctr": b"t", "bin/deep/er": b"d", "README": b"r"}
    machine = with_archive(tmp_path / "root", of_files(files))

    apply(Installed(asset="cni", path="/usr/local/bin/ctr-1", member="bin/ctr"), machine)
    apply(Installed(asset="cni", path="/usr/bin", member="bin/*"), machine)

    assert (tmp_path / "root/usr/local/bin/ctr-1").read_bytes() == b"t"
    assert sorted(each.name for each in (tmp_path / "root/usr/bin").iterdir()) == ["containerd", "ctr"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda place: place.write_bytes(b"other"),
        lambda place: place.unlink(),
        lambda place: place.chmod(0o700),
        lambda place: (place.unlink(), place.symlink_to("/bin/true")),
        lambda place: os.truncate(place, 3),
    ],
)
def test_a_program_that_was_changed_is_installed_again_and_others_are_left(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    machine = with_archive(tmp_path / "root", of_files(PLUGINS))
    apply(CNI, machine)
    before = tree(tmp_path / "root/opt/cni/bin")
    damage(tmp_path / "root/opt/cni/bin/bridge")

    changes = installed.look(CNI, machine)
    apply(CNI, machine)

    after = tree(tmp_path / "root/opt/cni/bin")
    assert len(changes) == 1
    assert "/opt/cni/bin/bridge" in changes[0].what
    assert after["bridge"][2] == before["bridge"][2]
    assert after["host-local"] == before["host-local"]


def test_without_its_record_the_archive_is_read_again_and_right_files_are_left(tmp_path: Path) -> None:
    machine = with_archive(tmp_path / "root", of_files(PLUGINS))
    apply(CNI, machine)
    before = tree(tmp_path / "root/opt")
    for each in machine.path(f"{machine.cache}/records").iterdir():
        each.write_text("{")

    apply(CNI, machine)

    assert tree(tmp_path / "root/opt") == before


def test_another_version_of_the_asset_is_a_change_before_it_is_there(tmp_path: Path) -> None:
    machine = with_archive(tmp_path / "root", of_files(PLUGINS))
    apply(CNI, machine)
    newer = with_archive(tmp_path / "root", of_files({"./bridge": b"newer"}))

    assert [each.what for each in installed.look(CNI, newer)] == ["installed"]
    apply(CNI, newer)
    assert (tmp_path / "root/opt/cni/bin/bridge").read_bytes() == b"newer"


def test_an_asset_that_was_damaged_in_the_cache_is_fetched_again_before_it_is_installed(tmp_path: Path) -> None:
    machine = a_machine(tmp_path / "root", a_file(tmp_path / "kubelet"))
    apply(KUBELET, machine)
    (cached,) = machine.path(f"{machine.cache}/assets").iterdir()
    cached.write_bytes(b"damaged")
    (tmp_path / "root/usr/local/bin/kubelet").unlink()

    apply(KUBELET, machine)

    assert (tmp_path / "root/usr/local/bin/kubelet").read_bytes() == DATA


@pytest.mark.parametrize(
    ("entry", "saw"),
    [
        (member("../etc/passwd", b"x"), "../etc/passwd leads out of it"),
        (member("bin/../../x", b"x"), "bin/../../x leads out of it"),
        (member("/etc/passwd", b"x"), "/etc/passwd leads out of it"),
        (member("a", kind=tarfile.SYMTYPE, link="../../etc"), "a is a link to ../../etc, out of it"),
        (member("a", kind=tarfile.SYMTYPE, link="/etc/passwd"), "a is a link to /etc/passwd, out of it"),
        (member("deep/a", kind=tarfile.LNKTYPE, link="../b"), "deep/a is a link to ../b, out of it"),
        (member("null", kind=tarfile.CHRTYPE), "null is a device or a pipe"),
        (member("pipe", kind=tarfile.FIFOTYPE), "null is a device or a pipe".replace("null", "pipe")),
        (member("inner", kind=tarfile.SYMTYPE, link="bridge"), "inner is not a regular file"),
        (member("bridge", b"again"), "bridge is in it twice"),
    ],
)
def test_an_archive_with_a_member_that_is_unsafe_is_refused_as_a_whole(
    tmp_path: Path, entry: tuple[tarfile.TarInfo, bytes], saw: str
) -> None:
    data = an_archive([member("./bridge", b"bridge"), entry])

    assert unsafe(tmp_path, data) == saw
    assert not (tmp_path / "etc").exists()


def test_an_unsafe_member_that_nobody_asked_for_is_refused_too(tmp_path: Path) -> None:
    data = an_archive([member("bin/runc", b"runc"), member("../../etc/cron.d/x", b"x")])

    saw = unsafe(tmp_path, data, Installed(asset="cni", path="/opt/cni/bin/runc", member="bin/runc"))

    assert saw == "../../etc/cron.d/x leads out of it"


def test_set_user_id_bits_of_an_archive_never_reach_the_disk(tmp_path: Path) -> None:
    machine = with_archive(tmp_path / "root", an_archive([member("sudo", b"x", mode=0o6755)]))

    apply(CNI, machine)

    assert (tmp_path / "root/opt/cni/bin/sudo").stat().st_mode & 0o7777 == 0o755


def test_a_task_that_asks_for_set_user_id_is_refused(tmp_path: Path) -> None:
    machine = a_machine(tmp_path / "root", a_file(tmp_path / "kubelet"))
    with pytest.raises(Refused, match="would run as another user"):
        installed.look(Installed(asset="kubelet", path="/usr/bin/x", mode=0o4755), machine)


def test_an_archive_of_too_many_files_is_refused(tmp_path: Path) -> None:
    data = of_files({f"file-{number}": b"" for number in range(MOST_MEMBERS + 1)})

    assert unsafe(tmp_path, data, Installed(asset="cni", path="/opt/x", member="x")) == (
        "more than 20000 files or 8 GiB"
    )


@pytest.mark.parametrize("data", [b"", b"no archive" * 500, of_files(PLUGINS)[:250], of_files(PLUGINS, "w")[:5000]])
def test_what_is_no_whole_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    if data:
        assert unsafe(tmp_path, data)


def test_a_member_that_is_not_there_is_named(tmp_path: Path) -> None:
    unsafe(tmp_path, of_files(PLUGINS), Installed(asset="cni", path="/opt/cni/bin/x", member="bin/x"))


def test_an_asset_that_no_task_brings_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no task brings the asset cni"):
        installed.look(CNI, a_machine(tmp_path, a_file(tmp_path / "kubelet")))


def test_a_directory_in_its_place_is_not_replaced(tmp_path: Path) -> None:
    machine = a_machine(tmp_path / "root", a_file(tmp_path / "kubelet"))
    (tmp_path / "root/usr/local/bin/kubelet").mkdir(parents=True)

    with pytest.raises(Refused) as raised:
        apply(KUBELET, machine)
    assert raised.value.saw == "it is not a file"


@pytest.mark.parametrize("at", range(0, 60, 2))
def test_killed_before_any_change_of_the_disk_the_next_run_ends_in_the_same_tree(tmp_path: Path, at: int) -> None:
    machine = with_archive(tmp_path / "root", of_files(PLUGINS))
    with killed_before_change(at):
        installed.apply(CNI, (), machine, quiet)

    apply(CNI, machine)

    whole = with_archive(tmp_path / "other/root", of_files(PLUGINS))
    apply(CNI, whole)
    contents = [{name: (each[0], each[2]) for name, each in tree(root / "opt").items()}
                for root in (tmp_path / "root", tmp_path / "other/root")]  # fmt: skip
    assert contents[0] == contents[1]


def test_an_installation_changes_the_disk_often_enough_for_the_test_above(tmp_path: Path) -> None:
    machine = with_archive(tmp_path / "root", of_files(PLUGINS))
    with killed_before_change(1000) as changes:
        installed.apply(CNI, (), machine, quiet)

    assert 40 < len(changes) <= 60
