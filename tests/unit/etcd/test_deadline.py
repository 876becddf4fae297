"""A call ends when its time is up, however it is cut into attempts."""

from __future__ import annotations

import time

import pytest

from protokube.etcd.deadline import Deadline


def test_what_is_left_shrinks_and_is_never_zero() -> None:
    deadline = Deadline.after(1000)
    first = deadline.left()
    time.sleep(0.01)

    assert 980 < deadline.left() < first <= 1000


def test_a_deadline_that_has_passed_is_a_timeout() -> None:
    with pytest.raises(TimeoutError, match="out of time"):
        Deadline.after(-0.001).left()


def test_attempts_share_what_is_left_and_the_last_one_gets_all_of_it() -> None:
    deadline = Deadline.after(6000)

    assert deadline.share(3).left() == pytest.approx(2000, abs=100)
    assert deadline.share(1).left() == pytest.approx(6000, abs=100)


def test_nothing_can_be_shared_once_the_time_is_up() -> None:
    with pytest.raises(TimeoutError):
        Deadline.after(0).share(2)
