"""Background work: started once, collected once, and a hanging one costs only its thread."""

from __future__ import annotations

import threading

import pytest

from clusters.disks import wait_until
from protokube.host.background import Threads


def test_work_is_started_by_one_call_and_collected_by_a_later_one() -> None:
    done = threading.Event()
    threads = Threads(done.set)

    assert threads.run("sum", lambda: 1 + 1) is None
    assert done.wait(30)
    assert threads.run("sum", lambda: 0) == 2


def test_while_it_runs_the_same_work_is_not_started_again_and_other_work_is() -> None:
    go_on, starts, woken = threading.Event(), [], threading.Event()
    threads = Threads(woken.set)

    def hang() -> str:
        starts.append("hang")
        go_on.wait(30)
        return "late"

    try:
        for _ in range(5):
            assert threads.run("slow", hang) is None
        threads.run("quick", lambda: starts.append("quick"))
        assert woken.wait(30)
        assert sorted(starts) == ["hang", "quick"]
    finally:
        go_on.set()
    wait_until(lambda: threads.run("slow", hang) == "late", "the result is not collected")


def test_what_the_work_raised_is_raised_where_it_is_collected_and_then_it_starts_anew() -> None:
    done = threading.Event()
    threads = Threads(done.set)

    def fail() -> int:
        raise OSError(5, "input/output error")

    assert threads.run("flush", fail) is None
    assert done.wait(30)

    with pytest.raises(OSError, match="input/output error"):
        threads.run("flush", fail)
    done.clear()
    assert threads.run("flush", lambda: 7) is None
    assert done.wait(30)
    assert threads.run("flush", lambda: 0) == 7


def test_work_that_could_not_be_started_is_tried_again() -> None:
    """As on a machine without free process ids."""
    done = threading.Event()
    threads = Threads(done.set)

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            threads.run("sum", lambda: 1)

    assert threads.run("sum", lambda: 2) is None
    assert done.wait(30)
    assert threads.run("sum", lambda: 0) == 2
