"""Whether our API server is ready: one slow answer does not count, two do, and everybody is told at once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.agent.controlplane.apiserver import EVERY, FRESH, MISSES, QUICK, SOON, ApiWatch
from protokube.errors import TryLater


class Server:
    def __init__(self) -> None:
        self.answers = True
        self.error: Exception | None = None

    def text(self, path: str) -> str:
        assert path == "/readyz"
        if self.error is not None:
            raise self.error
        if not self.answers:
            raise TryLater("no answer")
        return "ok"


def watched() -> tuple[Server, ApiWatch, list[bool]]:
    server, changes = Server(), list[bool]()
    watch = ApiWatch(server, lambda: changes.append(watch.ready()))
    return server, watch, changes


def test_before_the_first_answer_it_is_not_ready() -> None:
    assert not watched()[1].ready()


def test_the_first_good_answer_makes_it_ready() -> None:
    _, watch, changes = watched()
    watch.look()
    assert watch.ready()
    assert changes == [True]


def test_one_bad_answer_is_not_the_end() -> None:
    server, watch, changes = watched()
    watch.look()
    server.answers = False
    watch.look()
    assert watch.ready()
    watch.look()
    assert not watch.ready()
    assert changes == [True, False]


@given(st.lists(st.booleans()))
def test_it_is_ready_exactly_if_one_of_the_last_answers_was_good(answers: list[bool]) -> None:
    server, watch, changes = watched()
    for server.answers in answers:
        watch.look()
    assert watch.ready() == any(answers[-MISSES:])
    assert all(before != after for before, after in pairwise(changes)), "reported only what changed"


def test_an_answer_that_cannot_be_read_is_a_bad_one_and_no_secret() -> None:
    server, watch, _ = watched()
    watch.look()
    server.error = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    for _ in range(MISSES):
        with pytest.raises(UnicodeDecodeError):
            watch.look()
    assert not watch.ready()


def test_an_answer_grows_old_if_nobody_looks_any_more() -> None:
    now = 100.0
    watch = ApiWatch(Server(), lambda: None, lambda: now)
    watch.look()
    now += FRESH - 1
    assert watch.ready()
    now += 1
    assert not watch.ready()


def test_everybody_who_wants_to_know_is_told_of_a_change() -> None:
    _, watch, changes = watched()
    told: list[bool] = []
    watch.on_change(lambda: told.append(watch.ready()))
    watch.look()
    assert (changes, told) == ([True], [True])


def test_a_server_that_starts_is_polled_often_and_one_that_stays_broken_is_not() -> None:
    now, server = 100.0, Server()
    watch = ApiWatch(server, lambda: None, lambda: now)
    server.answers = False
    assert watch.work() == SOON
    now += QUICK
    assert watch.work() == EVERY
    server.answers = True
    assert watch.work() == EVERY
    server.answers = False
    assert [watch.work(), watch.work()] == [EVERY, SOON], "one slow answer is no change"
    now += QUICK
    assert watch.work() == EVERY
