"""What begins when: needs, lanes, attempts, and what a failure blocks."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from builders.nodeup import a_task
from protokube.nodeup.engine.schedule import Schedule
from protokube.nodeup.order import Graph, order
from protokube.nodeup.values import Task


def begun(schedule: Schedule, now: float = 0.0) -> list[str]:
    return [task.key.removeprefix("command ") for task in schedule.begin(now)]


def no_lane(_: Task) -> str:
    return ""


def one_lane(_: Task) -> str:
    return "packages"


def a_chain() -> Graph:
    return order([a_task("a"), a_task("b", "a"), a_task("c", "b"), a_task("x")])


def test_what_is_independent_begins_together_and_the_rest_when_it_can() -> None:
    schedule = Schedule(a_chain(), no_lane, workers=8)

    assert begun(schedule) == ["a", "x"]
    assert begun(schedule) == []
    schedule.done("command a")
    assert begun(schedule) == ["b"]


def test_no_more_begin_than_there_are_workers() -> None:
    schedule = Schedule(order([a_task(str(n)) for n in range(5)]), no_lane, workers=2)

    assert begun(schedule) == ["0", "1"]
    schedule.done("command 0")
    assert begun(schedule) == ["2"]


def test_tasks_of_one_lane_take_turns_in_their_order() -> None:
    schedule = Schedule(order([a_task(str(n)) for n in range(3)]), one_lane, workers=8)

    assert begun(schedule) == ["0"]
    schedule.done("command 0")
    assert begun(schedule) == ["1"]


def test_another_attempt_waits_for_its_time_and_keeps_its_lane() -> None:
    schedule = Schedule(order([a_task("0"), a_task("1")]), one_lane, workers=8)
    assert begun(schedule) == ["0"]

    schedule.later("command 0", 5.0)

    assert schedule.next_due == 5.0
    assert begun(schedule, 4.9) == []
    assert begun(schedule, 5.0) == ["0"]
    assert schedule.next_due is None


def test_a_failure_blocks_all_that_needs_it_and_nothing_else() -> None:
    schedule = Schedule(a_chain(), no_lane, workers=8)
    begun(schedule)

    assert schedule.failed("command a") == ("command b", "command c")
    schedule.done("command x")
    assert schedule.finished


def test_after_a_stop_nothing_begins_and_what_was_left_is_told() -> None:
    schedule = Schedule(a_chain(), no_lane, workers=8)
    begun(schedule)
    schedule.later("command x", 9.0)

    assert schedule.stop() == ("command b", "command c", "command x")
    assert begun(schedule, 10.0) == []
    assert schedule.running == {"command a"}


@given(
    edges=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30),
    lanes=st.lists(st.sampled_from(["", "a", "b"]), min_size=12, max_size=12),
    failing=st.sets(st.integers(0, 11)),
    workers=st.integers(1, 4),
    seed=st.integers(),
)
def test_every_task_ends_once_and_exactly_the_dependents_of_failures_are_blocked(
    edges: Sequence[tuple[int, int]], lanes: Sequence[str], failing: set[int], workers: int, seed: int
) -> None:
    after: Mapping[int, set[int]] = {n: {b for a, b in edges if a == n and b < n} for n in range(12)}
    graph = order([a_task(str(n), *map(str, sorted(after[n]))) for n in range(12)])
    lane_of = {f"command {n}": lanes[n] for n in range(12)}
    schedule = Schedule(graph, lambda task: lane_of[task.key], workers=workers)
    chance, now, tried, blocked = random.Random(seed), 0.0, dict[str, int](), list[str]()
    done: set[str] = set()
    while not schedule.finished:
        for task in schedule.begin(now):
            assert {f"command {n}" for n in after[int(task.key.split()[1])]} <= done
            tried[task.key] = tried.get(task.key, 0) + 1
        running = sorted(schedule.running)
        assert len(running) <= workers
        busy = [lane_of[key] for key in running if lane_of[key]]
        assert len(busy) == len(set(busy))
        if not running:
            assert schedule.next_due is not None
            now = schedule.next_due
            continue
        key = chance.choice(running)
        if tried[key] < 3 and chance.random() < 0.3:
            schedule.later(key, now + chance.random())
        elif int(key.split()[1]) in failing:
            blocked += schedule.failed(key)
        else:
            schedule.done(key)
            done.add(key)

    unreachable: set[int] = set()
    for n in range(12):
        if any(need in failing or need in unreachable for need in after[n]):
            unreachable.add(n)
    assert sorted(blocked) == sorted(f"command {n}" for n in unreachable)
    assert set(tried) == {f"command {n}" for n in range(12)} - set(blocked)
