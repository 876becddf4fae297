"""A disk that does not answer costs a bounded time, and one thread at most."""

from __future__ import annotations

import threading
import time

import pytest

from clusters.disks import wait_until
from protokube.errors import TryLater
from protokube.host.bounded import Bounds, Worker, bounded


def test_what_answers_in_time_is_the_answer() -> None:
    assert bounded(lambda: 42, 5, "adding up") == 42
    assert bounded(lambda: None, 5, "adding up") is None


def test_an_error_is_raised_where_the_caller_is() -> None:
    def fail() -> None:
        raise FileNotFoundError("gone")

    with pytest.raises(FileNotFoundError, match="gone"):
        bounded(fail, 5, "failing")
    assert bounded(lambda: 1, 5, "failing") == 1


def test_even_an_exit_does_not_end_in_the_thread() -> None:
    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        bounded(leave, 5, "leaving")


class Disk:
    """An action that ends when the test releases it."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        assert self.answers.wait(60)
        return "data"


def test_what_does_not_answer_is_left_behind_in_time() -> None:
    disk = Disk()
    begun = time.monotonic()

    with pytest.raises(TryLater, match=r"reading the identity took longer than 0\.05 s"):
        Bounds()(disk, 0.05, "reading the identity")

    assert time.monotonic() - begun < 20
    disk.answers.set()


def test_while_one_is_left_behind_no_second_is_started_and_the_answer_is_immediate() -> None:
    disk, bounds = Disk(), Bounds()
    with pytest.raises(TryLater):
        bounds(disk, 0.05, "reading")
    wait_until(lambda: disk.asked, "it is never asked")

    begun = time.monotonic()
    for _ in range(20):
        with pytest.raises(TryLater, match="reading has not answered yet"):
            bounds(disk, 30, "reading")

    assert time.monotonic() - begun < 20
    assert disk.asked == 1
    disk.answers.set()


def test_other_things_go_on_meanwhile() -> None:
    disk, bounds = Disk(), Bounds()
    with pytest.raises(TryLater):
        bounds(disk, 0.05, "reading one")

    assert bounds(lambda: "fine", 5, "reading another") == "fine"
    disk.answers.set()


def test_once_it_has_come_back_it_is_asked_anew_and_the_late_answer_is_not_used() -> None:
    disk, bounds = Disk(), Bounds()
    with pytest.raises(TryLater):
        bounds(disk, 0.05, "reading")
    disk.answers.set()
    wait_until(lambda: bounds._under_way["reading"].ended, "it does not come back")

    assert bounds(lambda: "new", 5, "reading") == "new"


def test_nothing_is_remembered_of_what_went_well() -> None:
    bounds = Bounds()
    for number in range(100):
        bounds(lambda: None, 5, f"reading {number}")

    assert bounds._under_way == {}


def workers() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if isinstance(each, Worker)}


def test_one_thread_serves_all_that_answer_in_time() -> None:
    before, bounds, ran_in = workers(), Bounds(), set()
    for number in range(50):
        bounds(lambda: ran_in.add(threading.current_thread()), 5, f"reading {number}")

    assert len(ran_in) == 1
    assert len(workers() - before) == 1


def test_a_thread_that_is_left_behind_keeps_no_program_from_ending_and_ends_when_the_disk_answers() -> None:
    before, disk, bounds = workers(), Disk(), Bounds()
    with pytest.raises(TryLater):
        bounds(disk, 0.05, "reading")
    (left,) = workers() - before

    assert left.daemon
    assert bounds(lambda: "fine", 5, "reading another") == "fine", "by another thread"
    disk.answers.set()
    left.join(30)
    assert not left.is_alive()


def test_a_thread_that_cannot_be_started_leaves_nothing_behind() -> None:
    """As a machine without free process ids answers."""
    bounds = Bounds()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse_to_start)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            bounds(lambda: 1, 5, "reading")

    assert bounds(lambda: 2, 5, "reading") == 2


def refuse_to_start(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_threads_that_call_at_once_do_not_wait_for_each_other() -> None:
    bounds, meet, answers = Bounds(), threading.Barrier(4), []

    def ask(number: int) -> None:
        bounds(lambda: meet.wait(30), 60, f"meeting {number}")
        answers.append(bounds(lambda: number, 60, f"reading {number}"))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)

    assert sorted(answers) == [0, 1, 2, 3]


def test_the_hint_says_where_to_look() -> None:
    disk = Disk()
    with pytest.raises(TryLater) as failed:
        Bounds()(disk, 0.01, "reading")

    assert "dmesg" in failed.value.hint
    disk.answers.set()
