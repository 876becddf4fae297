"""A disk that never answers: nobody waits for it, it is reported, and everything else goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.disks import SIZE, UUID, Liar, an_image, attached, in_memory, lying, own_mounts, run, settle, wait_until
from protokube.host import Content, Done, Failed, Format, Job, MountVolume, Probe, Probed, Result
from protokube.host.disks import DEADLINES, GRACE, HostDisks
from protokube.host.mounts import mounts


@pytest.fixture(scope="module", autouse=True)
def apart() -> Iterator[None]:
    with own_mounts():
        yield


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with in_memory() as folder:
        yield folder


class Clock:
    """Real seconds, and as many more as we say."""

    def __init__(self) -> None:
        self.more = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.more


class Hung:
    def __init__(self, liar: Liar) -> None:
        self.liar = liar
        self.clock = Clock()
        self.ended = threading.Event()
        self.disks = HostDisks(clock=self.clock, on_done=self.ended.set)

    def ask(self, job: Job) -> Result | None:
        """Ask, and see that asking does not wait."""
        begun = time.monotonic()
        result = self.disks.run(job)
        assert time.monotonic() - begun < 5
        return result

    def wait_until_it_hangs(self, job: Job) -> None:
        assert self.ask(job) is None
        pid = self.disks._children[job].pid
        wait_until(lambda: self.liar.tell("waiting") != "0", f"the child {pid} does not get to the disk")

    def make_overdue(self, job: Job) -> Failed:
        self.clock.more += DEADLINES[type(job)] + 1
        assert self.ask(job) is None
        time.sleep(0.1)
        self.clock.more += GRACE + 1
        result = self.ask(job)
        assert isinstance(result, Failed)
        return result

    def heal(self) -> None:
        self.ended.clear()
        self.liar.tell("heal")
        assert self.ended.wait(20)


@pytest.fixture
def hung(tmp_path: Path) -> Iterator[Hung]:
    with lying(an_image(tmp_path)) as liar:
        made = Hung(liar)
        yield made
        made.disks.close()
        liar.tell("heal")
        wait_until(lambda: all(child.result for child in made.disks._children.values()), "a child is left behind")


def test_a_read_that_hangs_is_overdue_and_is_not_started_twice(hung: Hung) -> None:
    job = Probe(block=hung.liar.block)
    hung.liar.tell("hang", SIZE // 2, SIZE // 2 + 512)
    hung.wait_until_it_hangs(job)

    found = hung.make_overdue(job)

    assert found.overdue
    assert "cannot even be killed" in found.why
    pid = hung.disks._children[job].pid
    assert isinstance(hung.ask(job), Failed)
    assert hung.disks._children[job].pid == pid
    assert [each for each, _ in hung.disks.running()] == [job]


def test_a_disk_that_answers_at_last_is_read_anew(hung: Hung) -> None:
    job = Probe(block=hung.liar.block)
    hung.liar.tell("hang", 0, 512)
    hung.wait_until_it_hangs(job)
    assert hung.make_overdue(job).overdue

    hung.heal()

    found = settle(hung.disks, job)
    assert isinstance(found, Probed)
    assert found.content is Content.BLANK


def test_a_hung_disk_is_busy_and_is_neither_formatted_nor_mounted(hung: Hung, tmp_path: Path) -> None:
    """The stuck child still has it: a second one could not know what the first will yet do."""
    block = hung.liar.block
    hung.liar.tell("hang", 0, 512)
    hung.wait_until_it_hangs(Probe(block=block))
    hung.make_overdue(Probe(block=block))

    formatted = settle(hung.disks, Format(block=block, uuid=UUID))
    mounted = settle(hung.disks, MountVolume(block=block, point=tmp_path / "point"))

    assert isinstance(formatted, Failed)
    assert isinstance(mounted, Failed)
    assert "is in use" in formatted.why
    assert "is in use" in mounted.why
    assert hung.liar.tell("writes") == "0"


def test_other_disks_are_worked_on_while_one_hangs(hung: Hung, tmp_path: Path) -> None:
    hung.liar.tell("hang", 0, SIZE)
    hung.wait_until_it_hangs(Probe(block=hung.liar.block))

    with attached(an_image(tmp_path, "vol-2.img")) as block:
        assert settle(hung.disks, Format(block=block, uuid=UUID)) == Done()
        assert settle(hung.disks, Probe(block=block)) == Probed(
            content=Content.EXT4, description="an ext4 file system", uuid=UUID
        )


def test_a_format_whose_write_hangs_is_overdue_and_can_be_finished_later(hung: Hung) -> None:
    job = Format(block=hung.liar.block, uuid=UUID)
    hung.liar.tell("freeze")
    hung.wait_until_it_hangs(job)

    assert hung.make_overdue(job).overdue
    hung.heal()

    assert settle(hung.disks, Format(block=hung.liar.block, uuid=UUID, again=True)) == Done()
    found = settle(hung.disks, Probe(block=hung.liar.block))
    assert isinstance(found, Probed)
    assert (found.content, found.uuid) == (Content.EXT4, UUID)


def test_a_check_that_hangs_is_overdue_although_the_child_itself_could_be_killed(hung: Hung, tmp_path: Path) -> None:
    """e2fsck, which the child started, is stuck in the kernel: as long as it is there, the job is not over."""
    assert settle(hung.disks, Format(block=hung.liar.block, uuid=UUID)) == Done()
    run("debugfs", "-w", "-R", "set_super_value state 0", hung.liar.image)  # so e2fsck has something to write
    job = MountVolume(block=hung.liar.block, point=tmp_path / "point")
    hung.liar.tell("freeze")
    hung.wait_until_it_hangs(job)
    pid = hung.disks._children[job].pid

    found = hung.make_overdue(job)

    assert found.overdue
    wait_until(lambda: "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text(), "the child does not die")
    hung.heal()
    assert not is_mounted(tmp_path / "point")


def is_mounted(point: Path) -> bool:
    return any(mount.point == point for mount in mounts())


def test_a_read_that_is_only_slow_is_waited_for(hung: Hung) -> None:
    job = Probe(block=hung.liar.block)
    hung.liar.tell("hang", 0, 512)
    hung.wait_until_it_hangs(job)
    hung.clock.more += DEADLINES[Probe] / 2
    assert hung.ask(job) is None

    hung.heal()

    found = settle(hung.disks, job)
    assert isinstance(found, Probed)
    assert found.content is Content.BLANK
