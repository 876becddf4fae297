"""What is retried, how often, and how long a write may take."""

from __future__ import annotations

import threading

import pytest

from protokube.errors import Refused, TryLater
from protokube.store import Unsure
from protokube.store.lazy_connection import LazyConnection
from protokube.store.patience import PATIENT, Busy, Patience

AT_ONCE = Patience(pauses=(0, 0))


class Answers:
    """Answers one after the other; raises those that are errors."""

    def __init__(self, *answers: object) -> None:
        self.left = list(answers)

    def __call__(self) -> object:
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_an_answer_is_not_asked_for_twice() -> None:
    answers = Answers("yes", "again")

    assert AT_ONCE.ask(answers) == "yes"
    assert answers.left == ["again"]


@pytest.mark.parametrize("failures", [1, 2])
def test_busy_is_asked_again_until_it_answers(failures: int) -> None:
    assert AT_ONCE.ask(Answers(*[Busy("later")] * failures, "yes")) == "yes"


def test_the_third_busy_is_the_answer() -> None:
    answers = Answers(Busy("one"), Busy("two"), Busy("three"), "never")

    with pytest.raises(TryLater, match="three"):
        AT_ONCE.ask(answers)

    assert answers.left == ["never"]


@pytest.mark.parametrize("error", [TryLater("slow"), Unsure("may stand"), Refused("no"), ValueError("bug")])
def test_nothing_else_is_asked_again(error: Exception) -> None:
    answers = Answers(error, "never")

    with pytest.raises(type(error)):
        AT_ONCE.ask(answers)

    assert answers.left == ["never"]


def test_a_write_gets_more_time_the_larger_it_is() -> None:
    assert PATIENT.to_send(b"") == 20
    assert PATIENT.to_send(b"x" * 1_000_000) == 30


def test_the_time_limits_of_a_user_stay_near_ten_seconds() -> None:
    assert PATIENT.connect == PATIENT.read == 10
    assert sum(PATIENT.pauses) < 2


def test_a_connection_is_made_once_for_all_threads() -> None:
    made: list[object] = []
    start = threading.Barrier(8)

    def make() -> object:
        made.append(object())
        return made[-1]

    held = LazyConnection(make)

    def take() -> None:
        start.wait()
        held.get()

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(made) == 1


def test_a_connection_is_given_back_once_and_made_anew() -> None:
    held = LazyConnection(object)
    first = held.get()

    assert held.drop() is first
    assert held.drop() is None
    assert held.get() is not first


def test_a_connection_that_fails_is_tried_again() -> None:
    answers = Answers(Refused("no credentials"), "connected")
    held = LazyConnection(answers)

    with pytest.raises(Refused):
        held.get()

    assert held.get() == "connected"
