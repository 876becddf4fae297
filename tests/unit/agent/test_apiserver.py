"""Whether our API server is ready: one slow answer does not count, two do, and everybody is told at once."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from protokube.agent.apiserver import MISSES, ApiWatch
from protokube.errors import TryLater


class Server:
    def __init__(self) -> None:
        self.answers = True

    def text(self, path: str) -> str:
        assert path == "/readyz"
        if not self.answers:
            raise TryLater("no answer")
        return "ok"


def watched() -> tuple[Server, ApiWatch, list[bool]]:
    server, told = Server(), list[bool]()
    watch = ApiWatch(server, lambda: told.append(watch.ready()))
    return server, watch, told


def test_before_the_first_answer_it_is_not_ready() -> None:
    assert not watched()[1].ready()


def test_the_first_good_answer_makes_it_ready() -> None:
    _, watch, told = watched()
    watch.look()
    assert watch.ready()
    assert told == [True]


def test_one_bad_answer_is_not_the_end() -> None:
    server, watch, told = watched()
    watch.look()
    server.answers = False
    watch.look()
    assert watch.ready()
    watch.look()
    assert not watch.ready()
    assert told == [True, False]


@given(st.lists(st.booleans()))
def test_it_is_ready_exactly_if_one_of_the_last_answers_was_good(answers: list[bool]) -> None:
    server, watch, told = watched()
    for server.answers in answers:
        watch.look()
    assert watch.ready() == any(answers[-MISSES:])
    assert all(before != after for before, after in pairwise(told)), "told only what changed"
