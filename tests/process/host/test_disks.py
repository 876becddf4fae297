"""Jobs are started once, collected once, killed when they are overdue, and never waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clusters.disks import UUID, settle, wait_until
from protokube.host import Block, Device, Disks, Done, Failed, Format, Job, MountVolume, Probe, Unmount, WriteTest
from protokube.host.devices import Devices
from protokube.host.disks import DEADLINES, FRESH, GRACE, HostDisks

BLOCK = Block(path=Path("/dev/nvme1n1"), number=(259, 1), size=1 << 30, serial="vol-1")
OTHER = Block(path=Path("/dev/nvme2n1"), number=(259, 2), size=1 << 30, serial="vol-2")
POINT = Path("/mnt/master-vol-1")
PROBE = Probe(block=BLOCK)
JOBS: list[Job] = [
    PROBE,
    Format(block=BLOCK, uuid=UUID),
    MountVolume(block=BLOCK, point=POINT),
    Unmount(point=POINT, number=(259, 1)),
]
AT_ONCE = """echo '{"done": true}'"""


class Clock:
    """Seconds that pass when we say so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """Disks whose child is a shell script, with a clock of their own and a count of the children started."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.folder = folder
        self.go, self.ready = folder / "go", folder / "ready"
        self.made: list[HostDisks] = []

    def disks(self, script: str, on_done: Callable[[], None] | None = None) -> HostDisks:
        counted = f"echo x >> {self.folder}/starts; {script}"
        one = HostDisks(clock=self.clock, on_done=on_done, command=("sh", "-c", counted))
        self.made.append(one)
        return one

    @property
    def starts(self) -> int:
        place = self.folder / "starts"
        return len(place.read_text().splitlines()) if place.exists() else 0


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.go.touch()
    for disks in made.made:
        disks.close()


def finished(disks: HostDisks, job: Job) -> None:
    """Wait until the child has ended, without collecting its result."""
    wait_until(lambda: any(each == job and disks._children[each].result for each in disks._children), "no end")


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_started_then_collected_once_then_new(bench: Bench, job: Job) -> None:
    disks = bench.disks(AT_ONCE)

    assert disks.run(job) is None
    finished(disks, job)

    assert disks.run(job) == Done()
    assert bench.starts == 1
    assert disks.run(job) is None
    finished(disks, job)
    assert bench.starts == 2


def test_a_job_that_is_asked_for_while_it_runs_is_the_same_job(bench: Bench) -> None:
    disks = bench.disks("sleep 60")

    assert [disks.run(PROBE) for _ in range(20)] == [None] * 20
    assert disks.run(Probe(block=Block(path=BLOCK.path, number=(259, 1), size=1 << 30, serial="vol-1"))) is None

    assert len(disks.running()) == 1


def test_jobs_for_different_devices_and_points_run_side_by_side(bench: Bench) -> None:
    disks = bench.disks("sleep 60")
    jobs: list[Job] = [*JOBS, Probe(block=OTHER), Format(block=BLOCK, uuid=UUID, again=True)]

    for job in jobs:
        assert disks.run(job) is None

    assert [job for job, _ in disks.running()] == jobs


def test_asking_never_waits_for_the_child(bench: Bench) -> None:
    disks = bench.disks("sleep 60")

    begun = time.monotonic()
    for _ in range(50):
        disks.run(PROBE)
        disks.running()

    assert time.monotonic() - begun < 30


def test_running_tells_how_long_each_has_taken(bench: Bench) -> None:
    disks = bench.disks("sleep 60")
    disks.run(PROBE)
    bench.clock.now += 7
    disks.run(JOBS[1])
    bench.clock.now += 5

    assert disks.running() == ((PROBE, 12.0), (JOBS[1], 5.0))


def test_a_job_that_has_ended_stays_listed_until_it_is_collected(bench: Bench) -> None:
    disks = bench.disks(AT_ONCE)
    disks.run(PROBE)
    finished(disks, PROBE)
    bench.clock.now += 5

    assert disks.running() == ((PROBE, 0.0),)
    assert disks.run(PROBE) == Done()
    assert disks.running() == ()


def test_whoever_waits_is_told_when_a_job_has_ended(bench: Bench) -> None:
    done = threading.Event()
    disks = bench.disks(AT_ONCE, on_done=done.set)

    disks.run(PROBE)

    assert done.wait(10)
    assert disks.run(PROBE) == Done()


@pytest.mark.parametrize("job", JOBS)
def test_a_job_that_takes_too_long_is_killed(bench: Bench, job: Job) -> None:
    disks = bench.disks("sleep 60")
    limit = DEADLINES[type(job)]
    disks.run(job)
    wait_until(lambda: bench.starts, "it does not start")
    bench.clock.now += limit
    assert disks.run(job) is None
    assert not disks._children[job].killed

    bench.clock.now += 1

    assert settle(disks, job, seconds=10) == Failed(f"killed, for it took longer than {limit:.0f} s", killed=True)
    assert bench.starts == 1


def test_a_job_that_nobody_asks_about_is_killed_all_the_same(bench: Bench) -> None:
    disks = bench.disks("sleep 60")
    disks.run(PROBE)
    pid = disks._children[PROBE].pid
    bench.clock.now += DEADLINES[Probe] + 1

    disks.run(Probe(block=OTHER))

    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "it lives on")


def test_a_job_that_ended_in_time_is_believed_however_late_it_is_collected(bench: Bench) -> None:
    """The deadline is for the child, not for the caller."""
    disks = bench.disks(AT_ONCE)
    job = JOBS[3]
    disks.run(job)
    finished(disks, job)
    bench.clock.now += FRESH

    assert disks.run(job) == Done()


@pytest.mark.parametrize("job", JOBS)
def test_a_result_that_nobody_collected_for_long_is_forgotten_and_asked_for_anew(bench: Bench, job: Job) -> None:
    disks = bench.disks(AT_ONCE)
    disks.run(job)
    finished(disks, job)
    bench.clock.now += FRESH + 1

    assert disks.running() == ()
    assert disks.run(job) is None
    finished(disks, job)
    assert bench.starts == 2


STUCK = "setsid sh -c 'touch {ready}; until test -e {go}; do sleep 0.02; done' & exit 0"
"""A part of the job leaves the session: like a process in the kernel's grip, it is not killed with the others."""


@pytest.fixture
def stuck(bench: Bench) -> HostDisks:
    return bench.disks(STUCK.format(go=bench.go, ready=bench.ready))


def get_stuck(bench: Bench, disks: HostDisks) -> None:
    assert disks.run(PROBE) is None
    wait_until(bench.ready.exists, "it does not start")


def test_a_job_that_cannot_be_killed_is_reported_and_not_started_again(bench: Bench, stuck: HostDisks) -> None:
    get_stuck(bench, stuck)
    bench.clock.now += DEADLINES[Probe] + 1
    assert stuck.run(PROBE) is None
    bench.clock.now += GRACE + 1

    for _ in range(5):
        found = stuck.run(PROBE)
        assert isinstance(found, Failed)
        assert found.overdue
        assert "cannot even be killed" in found.why

    assert bench.starts == 1
    assert [job for job, _ in stuck.running()] == [PROBE]
    bench.go.touch()
    finished(stuck, PROBE)


def test_a_job_that_was_stuck_is_started_again_once_it_is_gone(bench: Bench, stuck: HostDisks) -> None:
    get_stuck(bench, stuck)
    bench.clock.now += DEADLINES[Probe] + 1
    stuck.run(PROBE)
    bench.clock.now += GRACE + 1
    assert isinstance(stuck.run(PROBE), Failed)

    bench.go.touch()
    finished(stuck, PROBE)

    assert stuck.run(PROBE) is None
    wait_until(lambda: bench.starts == 2, "it was not started again")
    finished(stuck, PROBE)  # else its second process looks for a file of a folder that is gone


def test_a_stuck_job_does_not_keep_others_from_running(bench: Bench, stuck: HostDisks) -> None:
    get_stuck(bench, stuck)
    bench.clock.now += DEADLINES[Probe] + 1
    stuck.run(PROBE)

    stuck.run(Probe(block=OTHER))

    wait_until(lambda: bench.starts == 2, "it was not started")
    bench.go.touch()
    finished(stuck, PROBE)
    finished(stuck, Probe(block=OTHER))


def test_a_child_that_cannot_be_started_is_a_failure() -> None:
    disks = HostDisks(command=("/nowhere/python",))

    assert disks.run(PROBE) == Failed("cannot start a child: No such file or directory")
    assert disks.running() == ()


def test_a_child_that_falls_over_is_a_failure_with_its_words(bench: Bench) -> None:
    disks = bench.disks("echo 'ValueError: 7' >&2; exit 1")

    assert settle(disks, PROBE) == Failed("the child ended with 1: ValueError: 7")


def test_closing_kills_what_runs(bench: Bench) -> None:
    disks = bench.disks("sleep 60")
    disks.run(PROBE)
    pid = disks._children[PROBE].pid

    disks.close()

    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "it lives on")


def test_the_deadlines_are_those_that_were_agreed() -> None:
    assert dict(DEADLINES) == {Probe: 60, Format: 120, MountVolume: 120, Unmount: 30, WriteTest: 30}


def test_devices_are_looked_for_where_it_was_told(tmp_path: Path) -> None:
    disks: Disks = HostDisks(devices=Devices(root=tmp_path))

    assert disks.find(Device(path=Path("/dev/xvdu"), serial=None)) is None


def test_the_mount_table_is_this_machines() -> None:
    assert Path("/proc") in {mount.point for mount in HostDisks().mounts()}
