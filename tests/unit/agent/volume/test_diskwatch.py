"""The watch over mounted file systems: when a write is tried, what its result means, which signs end the serving."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from builders.agent import SIZE, a_round, a_volume
from clusters.scenario.edges import FakeClock, HostClock
from clusters.scenario.host import full_disk
from protokube.agent import links
from protokube.agent.cache import Cache
from protokube.agent.report import Report
from protokube.agent.round import Round
from protokube.agent.volume import diskfaults, diskwatch, mounted_volumes, verified
from protokube.host import Done, Failed, FileSystem, Job, Mount, Result, Unmount, Unwritable, WriteTest

SOUND = FileSystem(errors=0, free=SIZE // 2, size=SIZE)
BROKEN = Unwritable(why="input/output error")
FULL = Unwritable(why="no space left on device", full=True)
KILLED = Failed("killed, for it took longer than 60 s", killed=True)
STUCK = Failed("stuck for 90 s: process 7 cannot even be killed", overdue=True)


class Disks:
    """Mounted file systems, and children that end with what the test says. No unmount ever ends."""

    def __init__(self) -> None:
        self.table: dict[str, Mount] = {}
        self.systems: dict[Path, FileSystem | OSError] = {}
        self.absent = False
        self.result: Result | None = Done()
        """Of every write; None while they run."""
        self.started: list[Job] = []
        self.under_way: set[Job] = set()

    def mounts(self) -> Sequence[Mount]:
        return tuple(self.table.values())

    def present(self, number: tuple[int, int]) -> bool:
        return not self.absent

    def file_system(self, mount: Mount) -> FileSystem:
        found = self.systems.get(mount.point, SOUND)
        if isinstance(found, OSError):
            raise found
        return found

    def run(self, job: Job) -> Result | None:
        if job not in self.under_way:
            self.under_way.add(job)
            self.started.append(job)
            return None
        if isinstance(job, Unmount) or self.result is None:
            return None
        if self.result != STUCK:
            self.under_way.remove(job)
        return self.result


class Etcd:
    answers = True

    def reachable(self, endpoint: str) -> bool:
        return self.answers


class Bench:
    """The disk of main/a, mounted, verified and served; round after round."""

    def __init__(self, root: Path) -> None:
        self.clock, self.disks, self.etcd = FakeClock(), Disks(), Etcd()
        self.first = a_round(root, clock=HostClock(self.clock), disks=self.disks, etcd={"main": self.etcd})
        self.edges = self.first.edges
        nonces = count(1)
        self.edges.new_nonce = lambda: f"nonce-{next(nonces)}"
        self.edges.inside(links.DIRECTORY).mkdir(parents=True)
        self.volumes = [a_volume("vol-a", attached_to="i-1"), a_volume("vol-b", member="b", attached_to="i-1")]
        self.disk_errors: dict[str, str] = {}
        self.mount("vol-a")

    def mount(self, volume: str, *, is_verified: bool = True) -> Mount:
        number, point = (7, 1 + len(self.disks.table)), mounted_volumes.point_of(volume)
        mount = Mount(
            number=number, point=self.edges.inside(point), type="ext4", options=frozenset({"rw"}), id=number[1]
        )
        self.disks.table[volume] = mount
        if is_verified:
            verified.note(self.edges, volume, mount)
            self.edges.inside(f"{links.DIRECTORY}/{volume}").symlink_to(f"{point}/k8s.io/manifests/etcd.manifest")
        return mount

    def round_(self, **fields: Any) -> Round:
        seen = {"volumes": self.volumes, "disk_errors": dict(self.disk_errors), **fields}
        return Round(edges=self.edges, wanted=self.first.wanted, report=Report(), **seen)

    def round(self, **fields: Any) -> Round:
        round_ = self.round_(**fields)
        diskwatch.sync(round_)
        return round_

    def write_ends(self, result: Result) -> Round:
        """A round starts a write, and the next one collects this result."""
        self.disks.result = None
        self.round()
        self.disks.result = result
        return self.round()

    def add_option(self, option: str) -> None:
        mount = self.disks.table["vol-a"]
        self.disks.table["vol-a"] = replace(mount, options=mount.options | {option})

    def see(self, system: FileSystem | OSError, volume: str = "vol-a") -> None:
        self.disks.systems[self.disks.table[volume].point] = system

    def tests(self, volume: str = "vol-a") -> list[float]:
        """After how many seconds each write was begun."""
        tests = [each for each in self.disks.started if isinstance(each, WriteTest)]
        return [
            each.begun - 1000 for each in tests if each.point == self.edges.inside(mounted_volumes.point_of(volume))
        ]

    @property
    def served(self) -> list[str]:
        return sorted(each.name for each in self.edges.inside(links.DIRECTORY).iterdir())

    @property
    def unmounts(self) -> list[str]:
        return [each.point.name for each in self.disks.started if isinstance(each, Unmount)]

    def fault(self, volume: str = "vol-a") -> str:
        known = diskfaults.noted(self.edges, volume)
        return known.fault.why if known else ""

    def stays(self, round_: Round) -> bool:
        """Nothing speaks against vol-a."""
        return (self.served, self.unmounts, self.fault(), round_.leaving) == (["vol-a"], [], "", {})


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_write_is_tried_in_the_first_round_and_a_minute_after_each_result(bench: Bench) -> None:
    for _ in range(200):
        round_ = bench.round()
        assert (bench.stays(round_), round_.report.sentence()) == (True, "")
        bench.clock.advance(1)
    assert bench.tests() == [0, 61, 122, 183], "each result was collected a second later"


def not_looked_at(bench: Bench) -> None:
    mounted_volumes.observe(bench.round_())  # there is no folder where it is mounted
    assert "vol-a" in bench.edges.cache.of(mounted_volumes.MountsCache).failed


SUSPICIONS: dict[str, tuple[Callable[[Bench], None], Result]] = {
    "etcd does not answer": (lambda bench: setattr(bench.etcd, "answers", False), Done()),
    "no room": (lambda _bench: None, FULL),
    "no device": (lambda bench: setattr(bench.disks, "absent", True), Done()),
    "not looked at": (not_looked_at, Done()),
}


@pytest.mark.parametrize(("happens", "result"), SUSPICIONS.values(), ids=SUSPICIONS)
def test_a_suspicion_has_a_write_tried_after_five_seconds_and_not_before(
    bench: Bench, happens: Callable[[Bench], None], result: Result
) -> None:
    bench.write_ends(result)
    happens(bench)
    bench.clock.advance(4.5)
    bench.round()
    assert bench.tests() == [0]
    bench.clock.advance(0.5)
    bench.round()
    assert bench.tests() == [0, 5]


def test_while_the_provider_does_not_name_its_member_a_silent_etcd_is_no_suspicion(bench: Bench) -> None:
    bench.etcd.answers = False
    for _ in range(12):
        bench.round(volumes=None)
        bench.clock.advance(5)
    assert bench.tests() == [0]


def test_a_write_that_is_under_way_is_not_begun_a_second_time(bench: Bench) -> None:
    bench.disks.result, bench.etcd.answers = None, False
    for _ in range(30):
        assert bench.stays(bench.round())
        bench.clock.advance(10)
    assert bench.tests() == [0]


def test_a_mount_that_was_not_verified_is_not_written_to_and_its_signs_count(bench: Bench) -> None:
    bench.mount("vol-b", is_verified=False)
    bench.round()
    assert (bench.tests(), bench.tests("vol-b"), bench.unmounts) == ([0], [], [])
    bench.see(replace(SOUND, errors=1), "vol-b")
    bench.round()
    assert (bench.tests("vol-b"), bench.unmounts) == ([], ["master-vol-b"])


SIGNS: dict[str, tuple[Callable[[Bench], object], str]] = {
    "ro": (lambda bench: bench.add_option("ro"), "is read-only"),
    "emergency_ro": (lambda bench: bench.add_option("emergency_ro"), "turned read-only after an error"),
    "shutdown": (lambda bench: bench.add_option("shutdown"), "was shut down"),
    "errors": (lambda bench: bench.see(replace(SOUND, errors=2)), "reports 2 errors"),
    "EIO": (lambda bench: bench.see(OSError(errno.EIO, "Input/output error")), "cannot be read: input/output error"),
    "unreadable": (lambda bench: bench.disk_errors.update({"vol-a": "no device"}), "cannot be read: no device"),
    "write fails": (lambda bench: bench.write_ends(BROKEN), "cannot be written: input/output error"),
    "write hangs": (lambda bench: bench.write_ends(STUCK), f"hangs when it is written: {STUCK.why}"),
}


@pytest.mark.parametrize(("happens", "words"), SIGNS.values(), ids=SIGNS)
def test_each_sign_of_a_fault_stops_etcd_notes_the_fault_and_unmounts(
    bench: Bench, happens: Callable[[Bench], object], words: str
) -> None:
    happens(bench)
    round_ = bench.round()
    assert (bench.served, bench.fault(), bench.unmounts) == ([], words, ["master-vol-a"])
    assert round_.leaving == {"vol-a": "main"}
    (wait,) = round_.report.waits
    assert (wait.step, wait.about) == ("disks", "vol-a")
    assert wait.text == f"being unmounted, since its file system {words}"


def test_a_fault_is_noted_once_for_each_mount_and_outlives_its_sign_and_the_agent(bench: Bench) -> None:
    mount = bench.disks.table["vol-a"]
    bench.add_option("ro")
    bench.round()
    bench.disks.table["vol-a"], bench.edges.cache = mount, Cache()
    bench.clock.advance(10)
    assert bench.round().leaving == {"vol-a": "main"}
    known = diskfaults.noted(bench.edges, "vol-a")
    assert known is not None
    assert (known.fault.id, known.fault.at, known.fault.host, known.mount) == ("nonce-1", 1.8e9, "i-1", mount.key)


def test_a_file_system_that_was_unmounted_a_moment_ago_is_left_alone(bench: Bench) -> None:
    bench.see(OSError(errno.ENOENT, "No such file or directory"))
    round_ = bench.round()
    assert (bench.stays(round_), round_.report.sentence(), bench.tests()) == (True, "", [])


@pytest.mark.parametrize(("result", "mebibytes"), [(FULL, 512), (Done(), 16)], ids=["by a write", "by the count"])
def test_a_full_file_system_needs_a_person_and_stays_mounted(bench: Bench, result: Result, mebibytes: int) -> None:
    bench.see(replace(SOUND, free=mebibytes * 2**20))
    for round_ in (bench.write_ends(result), bench.round()):
        assert bench.stays(round_)
        (note,) = round_.report.person
        assert (note.step, note.about) == ("disks", "vol-a")
        assert note.text == f"its file system is full: {mebibytes} of 1024 MiB are free"
        assert "make the disk larger" in note.hint


def test_a_nearly_full_file_system_is_a_warning(bench: Bench) -> None:
    bench.see(replace(SOUND, free=40 * 2**20))
    round_ = bench.round()
    assert bench.stays(round_)
    assert round_.report.sentence() == "disks vol-a: WARNING: its file system is nearly full: 40 of 1024 MiB are free"


@pytest.mark.parametrize("result", [KILLED, Failed("the child ended with 1: it said nothing")], ids=["killed", "other"])
def test_a_write_that_was_killed_once_or_never_began_says_nothing_and_is_tried_again_at_once(
    bench: Bench, result: Result
) -> None:
    for _ in range(2):  # also after one that succeeded
        round_ = bench.write_ends(result)
        assert (bench.stays(round_), round_.report.sentence()) == (True, "")
        bench.clock.advance(1)
        assert bench.stays(bench.write_ends(Done()))
        bench.clock.advance(60)
    assert bench.tests() == [0, 1, 61, 62]


def test_two_writes_running_that_had_to_be_killed_mean_a_disk_that_hangs(bench: Bench) -> None:
    for _ in range(2):
        bench.write_ends(KILLED)
        bench.clock.advance(1)
    assert (bench.fault(), bench.served) == (f"hangs when it is written: {KILLED.why}", [])


def test_with_a_full_run_etcd_is_stopped_and_a_child_that_cannot_be_killed_stays_the_only_one(bench: Bench) -> None:
    bench.disks.result = STUCK
    bench.round()
    with full_disk():
        for _ in range(3):
            bench.clock.advance(70)
            round_ = bench.round()
    assert (bench.served, bench.unmounts, bench.fault(), bench.tests()) == ([], [], "", [0])
    assert "not unmounted yet, although its file system hangs" in round_.report.sentence()
    bench.round()
    assert (bench.unmounts, bench.tests()) == (["master-vol-a"], [0])


def test_trouble_with_one_volume_hides_nothing_about_another(bench: Bench) -> None:
    bench.mount("vol-b")
    bench.see(replace(SOUND, errors=1), "vol-b")
    verified.forget(bench.edges, "vol-a")
    verified.NOTES.file(bench.edges, "vol-a").mkdir()  # no such note can be read
    round_ = bench.round()
    assert [each.about for each in round_.report.waits] == ["vol-a", "vol-b"]
    assert round_.report.waits[0].text.startswith("is a directory")
    assert (bench.served, round_.leaving) == (["vol-a"], {"vol-b": "main"})


@pytest.mark.parametrize("result", [None, Done()], ids=["under way", "ended"])
def test_what_was_found_out_about_a_mount_is_forgotten_with_it(bench: Bench, result: Result | None) -> None:
    bench.disks.result = result
    bench.round()
    bench.round()
    mount = bench.disks.table.pop("vol-a")
    bench.round()
    bench.disks.table["vol-a"] = mount  # the next mount may look just like it
    bench.clock.advance(1)
    bench.round()
    assert bench.tests() == [0, 1]


def test_a_volume_that_is_being_left_is_not_judged_again(bench: Bench) -> None:
    bench.add_option("ro")
    round_ = bench.round(leaving={"vol-a": "main"})
    assert (bench.fault(), bench.served, bench.disks.started, round_.report.sentence()) == ("", ["vol-a"], [], "")


def test_a_fault_is_forgotten_once_the_provider_says_that_another_machine_has_the_volume(bench: Bench) -> None:
    diskfaults.note(bench.edges, "vol-b", "is read-only", None)
    bench.round()
    bench.volumes[1] = replace(bench.volumes[1], attached_to="i-2")
    bench.round(volumes=None)
    assert bench.fault("vol-b") == "is read-only"
    bench.round()
    assert bench.fault("vol-b") == ""


def test_a_disk_that_hangs_and_cannot_be_unmounted_costs_one_child(bench: Bench) -> None:
    bench.disks.result = STUCK
    for _ in range(10):
        bench.round()
        bench.clock.advance(10)

    assert bench.unmounts == ["master-vol-a"]
    assert bench.tests() == [0]


def test_a_child_that_could_not_begin_does_not_hide_that_the_file_system_is_full(bench: Bench) -> None:
    assert bench.write_ends(FULL).report.person
    bench.clock.advance(5)

    assert bench.write_ends(Failed("cannot start a child: no memory")).report.person
