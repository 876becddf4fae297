"""A call ends when its time is up, however it is cut into attempts."""

from __future__ import annotations

import time

import pytest

from protokube.etcd.deadline import Deadline


def test_what_is_left_shrinks_and_is_never_zero() -> None:
    deadline = Deadline.after(5)
    first = deadline.left()
    time.sleep(0.01)

    assert 4.9 < deadline.left() < first <= 5


def test_a_deadline_that_has_passed_is_a_timeout() -> None:
    with pytest.raises(TimeoutError, match="out of time"):
        Deadline.after(-0.001).left()


def test_attempts_share_what_is_left_and_the_last_one_gets_all_of_it() -> None:
    deadline = Deadline.after(6)

    assert deadline.share(3).left() == pytest.approx(2, abs=0.1)
    assert deadline.share(1).left() == pytest.approx(6, abs=0.1)


def test_nothing_can_be_shared_once_the_time_is_up() -> None:
    with pytest.raises(TimeoutError):
        Deadline.after(0).share(2)
