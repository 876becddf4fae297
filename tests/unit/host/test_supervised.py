"""Supervised threads: errors are reported, the work is retried, and hanging work is detected."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.etcd import eventually
from protokube.host.supervised import FIRST, LONGEST, REPORTED, Supervised, Trouble, Workers


@dataclass
class Work:
    """Does what the test says, each time."""

    errors: list[BaseException | None] = field(default_factory=list)
    done: int = 0

    def __call__(self) -> float:
        self.done += 1
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return 7.0


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def soon(true: Callable[[], object]) -> bool:
    return eventually(lambda: "" if true() else "not yet") == ""


@pytest.fixture
def started() -> Iterator[Callable[..., Supervised]]:
    made: list[Supervised] = []

    def start(work: Callable[[], float], **more: object) -> Supervised:
        made.append(Supervised("presence", work, **more))  # type: ignore[arg-type]
        made[-1].start()
        return made[-1]

    yield start
    for each in made:
        each.stop()


def test_work_that_goes_well_is_no_trouble_and_says_when_it_goes_on() -> None:
    worker = Supervised("presence", Work())
    assert worker.once() == 7.0
    assert worker.trouble() is None


@pytest.mark.parametrize(
    "error", [ValueError("a bug"), KeyError("ID"), SystemExit(3), KeyboardInterrupt(), MemoryError(), RecursionError()]
)
def test_whatever_it_raises_its_thread_lives_and_says_so_until_it_goes_on(
    error: BaseException, started: Callable[..., Supervised]
) -> None:
    work, woken = Work([None, error]), threading.Event()
    worker = started(lambda: work() * 0, changed=woken.set, longest=0.05)
    assert woken.wait(30)
    found = worker.trouble()
    assert found is None or found == Trouble(
        "presence", f"thread presence failed and is tried again: {type(error).__name__}: {error}"
    )
    assert soon(lambda: worker.trouble() is None and work.done > 3)


def test_one_error_is_logged_once_with_where_it_came_from(caplog: pytest.LogCaptureFixture) -> None:
    worker = Supervised("presence", Work([ValueError("a"), ValueError("a"), ValueError("b"), ValueError("b"), None]))
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            worker.once()
    assert [each.message for each in caplog.records] == [
        "presence: unexpected error, please report it",
        "presence: unexpected error, please report it",
        "presence: goes on after 4 failures",
    ]
    assert "Traceback (most recent call last)" in caplog.text


@given(st.lists(st.booleans(), max_size=40), st.sampled_from([5.0, LONGEST]))
def test_tries_come_one_second_apart_at_first_and_a_minute_in_the_end(good: list[bool], longest: float) -> None:
    work = Work([None if each else ValueError("a bug") for each in good])
    worker, running = Supervised("presence", work, longest=longest), 0
    for each in good:
        pause = worker.once()
        running = 0 if each else running + 1
        assert pause == (7.0 if each else min(FIRST * 2 ** (running - 1), longest))
        assert pause >= FIRST
    assert work.done == len(good)


def test_work_that_does_not_come_back_is_seen_and_no_second_thread_begins_it(
    started: Callable[..., Supervised],
) -> None:
    asked, go_on, clock, begun = threading.Event(), threading.Event(), Time(), []

    def hang() -> float:
        begun.append(1)
        asked.set()
        go_on.wait(60)
        return 60.0

    worker = started(hang, silent_after=60.0, clock=clock)
    assert asked.wait(30)
    assert worker.trouble() is None
    clock.now += 61
    assert worker.trouble() == Trouble("presence", "thread presence has not come back for more than 60 s", hangs=True)
    clock.now += 3600
    assert worker.trouble() is not None
    assert begun == [1]
    go_on.set()
    assert soon(lambda: worker.trouble() is None)


def test_work_that_may_wait_for_hours_is_not_taken_for_one_that_hangs(started: Callable[..., Supervised]) -> None:
    asked, go_on, clock = threading.Event(), threading.Event(), Time()

    def wait() -> float:
        asked.set()
        go_on.wait(60)
        return 60.0

    worker = started(wait, clock=clock)
    assert asked.wait(30)
    clock.now += 1e6
    assert worker.trouble() is None
    go_on.set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_ended_all_the_same_is_reported_and_started_again_once_a_minute(
    started: Callable[..., Supervised],
) -> None:
    """Nothing of ours does that; what reports the error might fail itself."""
    clock, failing, work = Time(), True, Work([ValueError("a bug")] * 9)

    def changed() -> None:
        if failing:
            raise MemoryError

    worker = started(work, changed=changed, clock=clock)
    assert soon(lambda: worker._thread is not None and not worker._thread.is_alive())
    first = worker._thread
    for _ in range(20):
        assert worker.trouble() == Trouble("presence", "thread presence ended: ValueError: a bug")
    assert (worker._thread is first, work.done) == (True, 1)
    failing, work.errors = False, []
    clock.now += LONGEST
    assert worker.trouble() is not None
    assert worker._thread is not first
    assert soon(lambda: worker.trouble() is None)


def test_one_that_was_stopped_is_no_trouble_and_does_nothing_more(started: Callable[..., Supervised]) -> None:
    work = Work()
    worker = started(work)
    assert soon(lambda: work.done)
    worker.stop()
    assert soon(lambda: worker._thread is not None and not worker._thread.is_alive())
    assert worker.trouble() is None
    assert work.done == 1


def test_a_thread_for_one_thing_that_ends_by_an_error_is_reported_for_a_while() -> None:
    clock = Time()
    workers, before = Workers(clock=clock), threading.excepthook
    threading.excepthook = workers.note_ended
    try:
        thread = threading.Thread(target=lambda: 1 // 0, name="disk job 12")
        thread.start()
        thread.join()
    finally:
        threading.excepthook = before
    (found,) = workers.troubles()
    assert found.text.startswith("thread disk job 12 ended: ZeroDivisionError")
    clock.now += REPORTED
    assert workers.troubles() == []


def test_all_of_them_are_started_stopped_and_asked(started: Callable[..., Supervised]) -> None:
    one = Supervised("one", Work([ValueError("a bug")] * 3), longest=0.05)
    other = Supervised("other", Work())
    workers = Workers([one, other])
    workers.start()
    assert soon(lambda: [each.name for each in workers.troubles()] == ["one"])
    assert soon(lambda: workers.troubles() == [])
    workers.stop()


def test_work_that_is_wanted_soon_does_not_wait_for_its_pause(started: Callable[..., Supervised]) -> None:
    work = Work()
    worker = started(work, first=3600.0)
    worker.soon()
    assert soon(lambda: work.done == 1)
    worker.soon()
    assert soon(lambda: work.done == 2)


def test_a_back_off_is_not_cut_short_by_those_who_want_it_soon() -> None:
    worker = Supervised("presence", Work(errors=[ValueError("broken")]))
    worker.once()
    worker.soon()
    waiting = threading.Thread(target=worker._paused, args=(3600.0,))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    worker.stop()
    waiting.join()
