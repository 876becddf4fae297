"""A disk that does not answer costs a bounded time, and one thread at most."""

from __future__ import annotations

import threading
import time

import pytest

from helpers_disks import wait_until
from protokube.errors import TryLater
from protokube.host.bounded import Bounds, bounded


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
    """An action that answers when it is told to."""

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
    wait_until(lambda: not bounds._under_way["reading"].is_alive(), "it does not come back")

    assert bounds(lambda: "new", 5, "reading") == "new"


def test_nothing_is_remembered_of_what_went_well() -> None:
    bounds = Bounds()
    for number in range(100):
        bounds(lambda: None, 5, f"reading {number}")

    assert bounds._under_way == {}


def test_a_thread_that_is_left_behind_does_not_keep_the_program_from_ending() -> None:
    disk, bounds = Disk(), Bounds()
    with pytest.raises(TryLater):
        bounds(disk, 0.05, "reading")

    assert bounds._under_way["reading"].daemon
    disk.answers.set()


def test_the_hint_says_where_to_look() -> None:
    disk = Disk()
    with pytest.raises(TryLater) as failed:
        Bounds()(disk, 0.01, "reading")

    assert "dmesg" in failed.value.hint
    disk.answers.set()
