"""The faults of a machine: each with exactly what a person is told, and a clean second run once it is repaired.

Machines are plain folders, or roots with real apt and dpkg; what only a host can have wrong comes as a fact.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from builders.command import process
from builders.nodeup import DEBIAN, a_root
from builders.nodeup_machine import tree_of
from builders.setups import DEBIAN_12, a_setup
from clusters.machines import debs
from clusters.machines.chroot import Chroot
from protokube.cli.nodeup.command import direct
from protokube.errors import ExitCode, ProtokubeError, TryLater
from protokube.launch.setup import to_tree
from protokube.nodeup.engine.control import Control
from protokube.nodeup.engine.leftovers import FOLDER as COMMANDS
from protokube.nodeup.engine.leftovers import start_of
from protokube.nodeup.engine.lock import place_for
from protokube.nodeup.facts import Facts
from protokube.nodeup.model.whole import tasks_of
from protokube.nodeup.provision import Place
from protokube.nodeup.run import Patience
from protokube.nodeup.trace import FOLDER as TRACES
from protokube.nodeup.trace import numbers
from protokube.nodeup.values import Directory, File, Gone, Link, Task, Unit, User

RUN = Path(__file__).with_name("run_of_nodeup.py")
SOURCE = Path(__file__).parents[3] / "src"
BIG = File(path="/srv/big", content=bytes(300_000))
SMALL = File(path="/etc/small", content=b"small\n")


@dataclass
class AMachine:
    """A root, and what its runs of nodeup print."""

    root: Path
    run: Path
    heard: Callable[[], str]
    facts: Facts = DEBIAN
    mounts: list[Path] = field(default_factory=list)

    @property
    def place(self) -> Place:
        return Place(root=self.root, run=self.run, patience=Patience(attempts=2, first=0.0))

    def nodeup(self, *tasks: Task) -> tuple[ExitCode, list[str]]:
        """The exit code, and the lines without the summary and without times."""
        code = direct(lambda: (self.facts, tasks), self.place, Control(), "text", retry=False)
        text = re.sub(r" \(\d+\.\d+ s\)$", "", self.heard().replace(str(self.root), "ROOT"), flags=re.MULTILINE)
        return code, [line for line in text.splitlines() if not line.startswith("nodeup: ")]

    def failure(self, *tasks: Task, code: ExitCode = ExitCode.REFUSED) -> str:
        """The line of the only failure; its key and spaces are not part of it."""
        ended, lines = self.nodeup(*tasks)
        assert ended is code, lines
        (line,) = (each for each in lines if each.startswith("failed"))
        return line.removeprefix("failed   ")

    def is_mended(self, *tasks: Task) -> None:
        """One run succeeds, and another one changes nothing at all."""
        code, lines = self.nodeup(*tasks)
        assert code is ExitCode.OK, lines
        before = tree_of(self.root, times=True)
        assert self.nodeup(*tasks) == (ExitCode.OK, [])
        assert tree_of(self.root, times=True) == before

    def mount(self, inside: str, options: str) -> Path:
        """A file system of its own."""
        path = self.root / inside
        path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], check=True)
        self.mounts.append(path)
        return path


@pytest.fixture
def machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[AMachine]:
    made = AMachine(a_root(tmp_path / "root").root, tmp_path / "run", lambda: capsys.readouterr().out)
    yield made
    for path in reversed(made.mounts):
        subprocess.run(["umount", "--lazy", path], check=True)


def remount(path: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", path], check=True)


def test_a_full_disk_is_named_and_leaves_no_part_of_a_file(machine: AMachine) -> None:
    disk = machine.mount("srv", "size=64k")

    failure = machine.failure(BIG, SMALL)

    assert failure == (
        "file /srv/big: there is no room left for ROOT/srv/big (No space left on device);"
        " make room on the disk that it is on"
    )
    assert list(disk.iterdir()) == []
    assert (machine.root / "etc/small").exists()
    remount(disk, "size=1m")
    machine.is_mended(BIG, SMALL)


def test_a_path_on_a_read_only_disk_is_named(machine: AMachine) -> None:
    disk = machine.mount("srv", "ro")

    failure = machine.failure(BIG)

    assert failure == (
        "file /srv/big: ROOT/srv/big is on a file system that is read-only (Read-only file system);"
        " mount it writable; errors of a disk make it so, too"
    )
    remount(disk, "rw")
    machine.is_mended(BIG)


def test_an_immutable_file_is_left_as_it_is(machine: AMachine) -> None:
    place = machine.root / "etc/small"
    place.write_text("theirs\n")
    subprocess.run(["chattr", "+i", place], check=True)
    try:
        failure = machine.failure(SMALL)
        assert place.read_text() == "theirs\n"
    finally:
        subprocess.run(["chattr", "-i", place], check=True)

    assert failure == (
        "file /etc/small: ROOT/etc/small may not be changed (Operation not permitted);"
        " nodeup needs root; `lsattr` shows whether a file is immutable"
    )
    assert [each.name for each in place.parent.iterdir() if "draft" in each.name] == []
    machine.is_mended(SMALL)


@pytest.mark.parametrize(
    ("there", "wanted", "told"),
    [
        (
            "srv",
            Directory(path="/srv"),
            "directory /srv: /srv is a file, which is not replaced (a file), want a directory;"
            " move it away if nobody needs it",
        ),
        (
            "srv",
            BIG,
            "file /srv/big: ROOT/srv/big cannot be there: something above it is not a directory (Not a directory);"
            " move that away",
        ),
    ],
)
def test_a_file_where_a_directory_must_be_is_not_replaced(
    machine: AMachine, there: str, wanted: Task, told: str
) -> None:
    (machine.root / there).write_text("theirs")

    assert machine.failure(wanted) == told

    assert (machine.root / there).read_text() == "theirs"
    (machine.root / there).unlink()
    machine.is_mended(wanted)


@pytest.mark.parametrize(
    ("wanted", "want"),
    [
        (BIG, "a file, 300000 bytes"),
        (Link(path="/srv/big", target="x"), "a link to x"),
        (Gone(path="/srv/big"), "nothing"),
    ],
)
def test_a_directory_where_something_else_must_be_is_not_replaced(machine: AMachine, wanted: Task, want: str) -> None:
    (machine.root / "srv/big").mkdir(parents=True)

    assert machine.failure(wanted) == (
        f"{wanted.key}: /srv/big is a directory, which is not replaced (a directory), want {want};"
        " move it away if nobody needs it"
    )

    (machine.root / "srv/big").rmdir()
    machine.is_mended(wanted)


def test_a_link_that_leads_nowhere_above_a_file_is_told(machine: AMachine) -> None:
    (machine.root / "loop").symlink_to("loop")

    failure = machine.failure(File(path="/loop/file", content=b""))

    assert failure == ("file /loop/file: /loop leads in a circle (a link to loop); correct the links in it")
    (machine.root / "loop").unlink()
    machine.is_mended(File(path="/loop/file", content=b""))


def test_a_masked_unit_is_left_to_who_masked_it(machine: AMachine) -> None:
    web = Unit(name="web.service", content="[Service]\nExecStart=/bin/true\n")
    place = machine.root / "etc/systemd/system/web.service"
    place.parent.mkdir(parents=True)
    place.symlink_to("/dev/null")

    assert machine.failure(web) == (
        "unit web.service: web.service is masked (/etc/systemd/system/web.service is a link to /dev/null);"
        " `systemctl unmask web.service` lets nodeup manage it"
    )

    assert str(place.readlink()) == "/dev/null"
    place.unlink()
    machine.is_mended(web)


def test_a_half_written_file_of_a_unit_is_written_again(machine: AMachine) -> None:
    web = Unit(name="web.service", content="[Service]\nExecStart=/bin/true\n")
    place = machine.root / "etc/systemd/system/web.service"
    place.parent.mkdir(parents=True)
    place.write_text("[Service]\nExecSta")

    machine.is_mended(web)

    assert place.read_text() == web.content


def test_a_file_of_a_unit_that_is_not_roots_is_taken_from_its_owner(machine: AMachine) -> None:
    web = Unit(name="web.service", content="[Service]\nExecStart=/bin/true\n")
    machine.is_mended(web)
    place = machine.root / "etc/systemd/system/web.service"
    os.chown(place, 1000, 1000)
    before = place.stat()

    assert machine.nodeup(web)[1] == [
        "changed  unit web.service: /etc/systemd/system/web.service owner: 1000:1000 -> 0:0"
    ]

    after = place.stat()
    assert (after.st_uid, after.st_gid, after.st_ino, after.st_mtime_ns) == (0, 0, before.st_ino, before.st_mtime_ns)
    machine.is_mended(web)


def test_a_user_with_other_values_is_not_changed(machine: AMachine) -> None:
    etcd = User(name="etcd", uid=333, home="/var/lib/etcd")
    accounts = machine.root / "etc/passwd"
    theirs = accounts.read_text() + "etcd:x:1000:0:somebody:/home/etcd:/bin/bash\n"
    accounts.write_text(theirs)

    assert machine.failure(etcd) == (
        "user etcd: the user etcd exists with other values, which are not changed"
        " (id 1000, home /home/etcd, shell /bin/bash), want id 333, home /var/lib/etcd, shell /usr/sbin/nologin;"
        " change it with `usermod`, or remove it if nobody needs it"
    )

    assert accounts.read_text() == theirs
    accounts.write_text(theirs.replace("etcd:x:1000:0:somebody:/home/etcd:/bin/bash\n", ""))
    machine.is_mended(etcd)


def test_a_user_whose_group_is_no_number_is_for_pwck(machine: AMachine) -> None:
    accounts = machine.root / "etc/passwd"
    accounts.write_text(accounts.read_text() + "etcd:x:333:none::/nonexistent:/usr/sbin/nologin\n")

    failure = machine.failure(User(name="etcd", group="nogroup"))

    assert failure == (
        "user etcd: /etc/passwd has an entry that is none (the entry of etcd); `pwck` and `grpck` repair it"
    )


def test_a_folder_for_traces_that_cannot_be_written_keeps_nothing_from_its_work(machine: AMachine) -> None:
    logs = machine.mount("var/log", "ro")

    code, lines = machine.nodeup(SMALL)

    assert code is ExitCode.OK
    assert lines == [
        "changed  file /etc/small: content: missing -> 6 bytes",
        "trace: not written: ROOT/var/log/protokube is on a file system that is read-only (Read-only file system)",
    ]
    remount(logs, "rw")
    machine.is_mended(SMALL)


def test_a_file_instead_of_the_folder_for_traces_keeps_nothing_from_its_work(machine: AMachine) -> None:
    place = machine.root / TRACES[1:]
    place.parent.mkdir(parents=True)
    place.write_text("theirs")

    assert machine.nodeup(SMALL) == (
        ExitCode.OK,
        [
            "changed  file /etc/small: content: missing -> 6 bytes",
            "trace: not written: ROOT/var/log/protokube/nodeup cannot be made:"
            " something else is there or above it (File exists)",
        ],
    )

    assert place.read_text() == "theirs"
    place.unlink()
    machine.is_mended(SMALL)


def test_links_in_a_circle_instead_of_the_folder_for_traces_lose_no_result(machine: AMachine) -> None:
    (machine.root / "var").mkdir()
    (machine.root / "var/log").symlink_to("log")

    code, lines = machine.nodeup(SMALL)

    assert code is ExitCode.OK
    assert lines[-1] == "trace: not written: /var/log/protokube/nodeup leads in a circle (a link to log)"


def test_garbage_among_traces_is_neither_read_nor_removed(machine: AMachine) -> None:
    folder = machine.root / TRACES[1:]
    (folder / "000007.json").mkdir(parents=True)
    (folder / ".000003.json.draft").mkdir()
    for name in ("7.json", "٣٣٣٣٣٣.json", "x.json", "000002.json.bak"):
        (folder / name).write_text("{")
    (folder / "000005.json").write_text("[" * 100_000)
    before = {each.name for each in folder.iterdir()}

    machine.is_mended(SMALL)

    assert {each.name for each in folder.iterdir()} == before | {"000008.json", "000009.json"}
    assert numbers(folder) == [5, 8, 9]
    shown = process("nodeup", "report", "--root", str(machine.root))
    assert (shown.code, shown.err) == (0, "")
    broken = process("nodeup", "report", "5", "--root", str(machine.root))
    assert broken.code == ExitCode.REFUSED
    assert broken.err.startswith(f"error: {folder}/000005.json is no trace of nodeup\n  saw:  maximum recursion depth")


def test_garbage_among_notes_is_removed_and_nobody_is_waited_for(machine: AMachine) -> None:
    notes = place_for(machine.root, machine.run) / COMMANDS
    (notes / "folder").mkdir(parents=True)
    own = f'"started": "{start_of(os.getpid())}", "command": "x"'
    for name, text in {
        "1": "", "2": "\udcff", "x": "{}", "-1": "[]", "3": "[" * 100_000, "4": '{"started": true, "deadline": {}}',
        "5": '{"started": "1", "command": "x", "deadline": 1' + "0" * 400 + "}",
        f"{os.getpid()}x": "{" + own + ', "deadline": 0}',
    }.items():  # fmt: skip
        (notes / name).write_bytes(os.fsencode(text))

    machine.is_mended(SMALL)

    assert [each.name for each in notes.iterdir()] == ["folder"]


def test_another_nodeup_at_work_is_named_and_waited_for_by_whoever_wants(machine: AMachine) -> None:
    place = place_for(machine.root, machine.run)
    program = (
        "import sys; from pathlib import Path; from protokube.nodeup.engine.lock import locked\n"
        "with locked(Path(sys.argv[1]), 'protokube nodeup --retry'): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        with pytest.raises(TryLater) as refused:
            machine.nodeup(SMALL)
        other.communicate("")

    assert str(refused.value) == (
        "another nodeup is at work on this machine\n"
        f"  saw:  process {other.pid}: protokube nodeup --retry\n"
        "  hint: wait until it has ended"
    )
    assert not (machine.root / "etc/small").exists()
    machine.is_mended(SMALL)


def test_a_lock_that_is_no_file_is_told_and_is_no_bug(machine: AMachine) -> None:
    lock = place_for(machine.root, machine.run) / "lock"
    lock.mkdir(parents=True)

    with pytest.raises(ProtokubeError, match=re.escape(f"{lock} is a directory, which is not replaced")):
        machine.nodeup(SMALL)

    lock.rmdir()
    machine.is_mended(SMALL)


SETUP = a_setup()
OVERRIDE = (
    'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\nSystemdCgroup = false\n'
)


@pytest.mark.parametrize(
    ("facts", "told", "hint"),
    [
        (
            {"systemd": 0},
            "systemd: it does not run here",
            "protokube starts everything by systemd; use an image that has it",
        ),
        (
            {"clock_error": 3600.0, "container": True},
            "clock: it is 3600 s ahead, with which no certificate can be judged",
            "set the clock of the host of this container",
        ),
        (
            {"swap": True},
            "swap: it is on, with which the kubelet does not start",
            "`swapoff -a`, and remove it from /etc/fstab; or set kubelet.failSwapOn: false",
        ),
        (
            {"cluster": "other.example.com", "node_name": "other-1"},
            "cluster: it belongs to other.example.com already",
            "reset it, or remove /etc/protokube/machine.json if nothing on it is needed",
        ),
    ],
)
def test_a_machine_that_is_unfit_is_told_why_and_becomes_fit(
    machine: AMachine, facts: dict[str, object], told: str, hint: str
) -> None:
    before = tree_of(machine.root, times=True)

    def prepare() -> tuple[Facts, tuple[Task, ...]]:
        return DEBIAN_12, tasks_of(SETUP, replace(DEBIAN_12, **facts))  # type: ignore[arg-type]

    with pytest.raises(ProtokubeError) as unfit:
        direct(prepare, machine.place, Control(), "text", retry=False)

    first, *lines = [line.strip() for line in str(unfit.value).splitlines()]
    assert first.endswith("for 1 reason; nothing was changed")
    assert lines == [told, f"hint: {hint}"]
    after = tree_of(machine.root, times=True)
    assert {path: after[path] for path in before} == before
    assert set(after) - set(before) == {"var", "var/log"}  # of the trace, which says why
    assert tasks_of(SETUP, DEBIAN_12)


def test_two_cgroup_drivers_on_one_machine_are_told_before_anything_is_changed(machine: AMachine) -> None:
    def prepare() -> tuple[Facts, tuple[Task, ...]]:
        return DEBIAN_12, tasks_of(a_setup(containerd={"configOverride": OVERRIDE}), DEBIAN_12)

    with pytest.raises(ProtokubeError) as unfit:
        direct(prepare, machine.place, Control(), "text", retry=False)

    assert str(unfit.value).splitlines()[1].strip() == (
        "cgroup driver: containerd is told to use cgroupfs, and the kubelet systemd"
    )
    assert tasks_of(a_setup(containerd={"configOverride": OVERRIDE}, kubelet={"cgroupDriver": "cgroupfs"}), DEBIAN_12)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda tree: "{", "SETUP is not JSON: "),
        (lambda tree: json.dumps({**tree, "version": 9}), "SETUP was made by a newer version of protokube\n"),
        (lambda tree: json.dumps({**tree, "colour": "red"}), "1 problem in SETUP\n  colour: "),
        (lambda tree: json.dumps([tree]), "SETUP holds no JSON object\n"),
        (lambda tree: "[" * 100_000, "SETUP is not JSON: "),
    ],
    ids=["broken", "newer", "unknown field", "a list", "deep"],
)
def test_a_setup_that_cannot_be_used_is_told_and_changes_nothing(
    tmp_path: Path, change: Callable[[dict[str, object]], str], told: str
) -> None:
    root = a_root(tmp_path / "root").root
    setup = tmp_path / "setup.json"
    setup.write_text(change(to_tree(SETUP)))
    before = tree_of(root / "etc", times=True)

    answer = process("nodeup", "--root", str(root), "--setup", str(setup))

    assert answer.code == ExitCode.INVALID, answer.err
    assert answer.err.replace(str(setup), "SETUP").startswith(f"error: {told}")
    assert tree_of(root / "etc", times=True) == before
    report = process("nodeup", "report", "--root", str(root))
    assert told.partition("\n")[0].replace("SETUP", str(setup)).strip() in report.out
    setup.write_text(json.dumps(to_tree(SETUP)))
    assert (
        "no root of a system: it has no os-release" in process("nodeup", "--root", str(root), "--setup", str(setup)).err
    )
    place_for(root).joinpath("lock").unlink()
    place_for(root).rmdir()


def test_a_folder_that_is_no_system_gets_not_even_a_trace(tmp_path: Path) -> None:
    """As where an image was to be mounted, and is not."""
    answer = process("nodeup", "--root", str(tmp_path))

    assert answer.code == ExitCode.REFUSED
    assert answer.err == (
        f"error: {tmp_path} is no root of a system\n  saw:  no directory {tmp_path}/etc\n"
        "  hint: --root names the root of an image; is it mounted?\n"
    )
    assert list(tmp_path.iterdir()) == []


@dataclass
class Debian:
    """A root with real apt and dpkg."""

    chroot: Chroot

    def start(self, *names: str) -> subprocess.Popen[str]:
        command = self.chroot.keeper.enter("env", f"PYTHONPATH={SOURCE}", sys.executable, str(RUN))
        pipe = subprocess.PIPE
        running = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)
        assert running.stdin
        request = {"root": str(self.chroot.path), "run": f"{self.chroot.path}/run/nodeup", "packages": [names]}
        running.stdin.write(json.dumps(request))
        running.stdin.close()
        running.stdin = None
        return running

    def nodeup(self, *names: str) -> tuple[int, str]:
        running = self.start(*names)
        out, _ = running.communicate(timeout=120)
        return running.returncode, out

    def is_mended(self, *names: str) -> str:
        code, out = self.nodeup(*names)
        assert code == 0, out
        status = self.chroot.files / "var/lib/dpkg/status"
        before = status.stat().st_mtime_ns
        code, again = self.nodeup(*names)
        assert (code, again.splitlines()[-1].partition(" in ")[0]) == (0, "nodeup: 0 changed, 1 unchanged"), again
        assert status.stat().st_mtime_ns == before
        return out


@pytest.fixture
def debian() -> Iterator[Debian]:
    made = Chroot()
    debs.publish(made.files / "repository")
    debs.configure(made.files)
    yield Debian(made)
    made.close()


def test_a_package_that_is_missing_from_all_sources_is_named(debian: Debian) -> None:
    code, out = debian.nodeup("tiny-gone")

    assert code == ExitCode.REFUSED
    assert out.splitlines()[0] == (
        "failed   packages tiny-gone: debian 12 has no package tiny-gone, as its sources are configured"
        " (E: Unable to locate package tiny-gone); `apt-cache policy` shows what the sources have"
    )
    gone = debs.Deb(name="tiny-gone")
    debs.publish(debian.chroot.files / "repository", [*debs.ALL, gone])
    debian.is_mended("tiny-gone")


def test_a_package_that_another_install_left_half_configured_is_finished(debian: Debian) -> None:
    debian.chroot.run("apt-get", "update")
    (debian.chroot.files / "fail-in-postinst").touch()
    code, out = debian.nodeup("tiny-conf")
    assert code == ExitCode.REFUSED
    assert out.splitlines()[0].startswith("failed   packages tiny-conf: packages cannot be installed: it failed (")
    assert "subprocess returned error exit status 3" in out
    (debian.chroot.files / "fail-in-postinst").unlink()

    out = debian.is_mended("tiny-conf")

    assert "tiny-conf: half-configured -> installed" in out


def test_who_holds_the_lock_of_dpkg_is_waited_for(debian: Debian) -> None:
    hold = (
        "import fcntl, sys; lock = open('/var/lib/dpkg/lock-frontend', 'w'); fcntl.lockf(lock, fcntl.LOCK_EX)\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    command = debian.chroot.keeper.enter("chroot", str(debian.chroot.path), "python3", "-c", hold)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        running = debian.start("tiny-conf")
        assert running.stdout
        told = running.stdout.readline()  # before the lock is released
        holder.communicate("")
        out, _ = running.communicate(timeout=120)

    assert re.fullmatch(
        r"waits    packages tiny-conf: waiting for python3 \(pid \d+\) to release the lock of the package manager\n",
        told,
    ), told
    assert running.returncode == 0, out
    debian.is_mended("tiny-conf")
