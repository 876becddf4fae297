from __future__ import annotations

import logging
import threading

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, invariant, multiple, rule

from builders.examples import examples
from fakes.watch_server import until
from protokube.controllers.queue import Pending, Queue
from protokube.errors import TryLater

KEYS = st.sampled_from("abc")


class AnyOrder(RuleBasedStateMachine):
    """Against a model that keeps, for each key, only whether and when it must still be processed."""

    taken: Bundle[str] = Bundle("taken")

    def __init__(self) -> None:
        super().__init__()
        self.pending: Pending[str] = Pending()
        self.now = 0.0
        self.wanted: set[str] = set()  # added since it was last taken
        self.due: dict[str, float] = {}
        self.busy: set[str] = set()
        self.failures: dict[str, int] = {}

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self.pending.add(key)
        self.wanted.add(key)

    @rule(key=KEYS, seconds=st.floats(0, 100))
    def add_later(self, key: str, seconds: float) -> None:
        self.pending.add_at(key, self.now + seconds)
        self.due[key] = min(self.due.get(key, float("inf")), self.now + seconds)

    @rule(seconds=st.floats(0, 100))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(target=taken)
    def take(self) -> str | MultipleResults[str]:
        key = self.pending.take(self.now)
        for each in [each for each, due in self.due.items() if due <= self.now]:
            del self.due[each]
            self.wanted.add(each)
        if key is None:
            assert not self.wanted - self.busy, "a key was lost"
            return multiple()
        assert key in self.wanted, "nobody asked for it"
        assert key not in self.busy, "two work on one key"
        self.wanted.discard(key)
        self.busy.add(key)
        return key

    @rule(data=st.data(), failed=st.booleans(), again=st.none() | st.floats(0, 100))
    def done(self, data: st.DataObject, failed: bool, again: float | None) -> None:
        if not self.busy:
            return
        key = data.draw(st.sampled_from(sorted(self.busy)))
        self.busy.remove(key)
        self.failures[key] = self.failures.get(key, 0) + 1 if failed else 0
        wait = self.pending.done(key, self.now, failed=failed, again=again)
        if failed:
            assert wait == min(60, 0.05 * 2 ** (self.failures[key] - 1))
        else:
            assert wait == again
        if wait is not None:
            self.due[key] = min(self.due.get(key, float("inf")), self.now + wait)

    @invariant()
    def the_first_that_falls_due_is_known(self) -> None:
        assert self.pending.next_due() == min(self.due.values(), default=None)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = examples(60, stateful_step_count=40)


def test_a_key_that_fails_ten_thousand_times_still_waits_a_minute() -> None:
    pending: Pending[str] = Pending()
    for _ in range(10000):
        pending.add("a")
        assert pending.take(0.0) == "a"
        wait = pending.done("a", 0.0, failed=True)
    assert wait == 60


def test_many_threads_do_all_the_work_and_never_the_same_at_once() -> None:
    lock, working, done = threading.Lock(), set[int](), dict[int, int]()
    wrong: list[int] = []

    def work(key: int) -> float | None:
        with lock:
            if key in working:
                wrong.append(key)
            working.add(key)
        with lock:
            working.discard(key)
            done[key] = done.get(key, 0) + 1
        return 0.001 if done[key] < 5 else None

    queue: Queue[int] = Queue("numbers", work)
    stop = threading.Event()
    threads = [threading.Thread(target=queue.run, args=(stop,), daemon=True) for _ in range(4)]
    for each in threads:
        each.start()
    for key in list(range(50)) * 3:
        queue.add(key)
    queue.add_after(99, 0.01)
    until(lambda: len(done) == 51 and min(done.values()) >= 5, "all is done five times")
    stop.set()
    queue.wake()
    for each in threads:
        each.join(5)
        assert not each.is_alive()
    assert not wrong


def test_what_fails_is_tried_again_and_a_bug_asks_to_be_reported(caplog: pytest.LogCaptureFixture) -> None:
    tries: list[str] = []
    ended = threading.Event()

    def work(key: str) -> float | None:
        tries.append(key)
        if len(tries) == 1:
            raise TryLater("the far side sleeps")
        if len(tries) == 2:
            raise ZeroDivisionError("a bug")
        ended.set()
        return None

    queue: Queue[str] = Queue("work", work)
    stop = threading.Event()
    thread = threading.Thread(target=queue.run, args=(stop,), daemon=True)
    with caplog.at_level(logging.INFO):
        thread.start()
        queue.add("a")
        assert ended.wait(20)
        stop.set()
        queue.wake()
        thread.join(5)
    assert tries == ["a", "a", "a"]
    assert "work a: the far side sleeps; again in 0.05 s" in caplog.text
    assert "work a: unexpected error, please report it" in caplog.text
    assert "a bug" in caplog.text
