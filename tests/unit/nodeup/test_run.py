"""A run: results and reasons, attempts, blocking, interruption, restarts that survive a kill, plans."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.nodeup import Heard, a_task
from builders.nodeup_world import World
from protokube.nodeup.changes import Outcome, Result
from protokube.nodeup.engine.control import Control
from protokube.nodeup.machine import Say
from protokube.nodeup.run import Patience, RunControl
from protokube.nodeup.values import Task, Unit


def results(outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    return {name: str(outcome.result) for name, outcome in outcomes.items()}


CHAIN = [a_task("a"), a_task("b", "a"), a_task("c", "b"), a_task("x")]


def test_everything_becomes_true_and_the_second_run_changes_nothing() -> None:
    world = World()

    assert set(results(world.run(CHAIN)).values()) == {"changed"}
    assert world.applied.index("a") < world.applied.index("b") < world.applied.index("c")
    applied = list(world.applied)
    assert set(results(world.run(CHAIN)).values()) == {"unchanged"}
    assert world.applied == applied


def test_a_failure_blocks_what_needs_it_and_nothing_else_and_the_next_run_resumes() -> None:
    world = World(refused={"b"})

    first = world.run(CHAIN)

    assert results(first) == {"a": "changed", "b": "failed", "c": "blocked", "x": "changed"}
    assert first["b"].why == "b must not be (x), want y; ask somebody"
    assert first["c"].why == "command b"
    world.refused.clear()
    assert results(world.run(CHAIN)) == {"a": "unchanged", "b": "changed", "c": "changed", "x": "unchanged"}


def test_what_may_pass_by_itself_is_tried_again_and_what_is_waited_for_is_told() -> None:
    world, heard = World(later={"a": 2}), Heard()

    assert results(world.run(CHAIN, heard=heard))["a"] == "changed"
    assert [line for line in heard.lines if line.startswith("waits")] == [
        "waits command a: a is not ready; wait", "waits command a: a is not ready; wait"
    ]  # fmt: skip
    assert heard.lines.count("began command a") == 1


def test_attempts_are_bounded() -> None:
    world = World(later={"a": 9})

    outcome = world.run(CHAIN)["a"]

    assert (outcome.result, outcome.again, outcome.why) == (
        Result.FAILED, True, "a is not ready; wait (3 attempts)"
    )  # fmt: skip
    assert world.applied.count("a") == 3


def test_the_pause_between_attempts_doubles_up_to_its_bound() -> None:
    patience = Patience(first=1, most=30)

    assert [patience.wait(attempt) for attempt in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]


def test_what_is_refused_is_not_tried_again() -> None:
    world = World(refused={"a", "look"})

    outcomes = world.run([a_task("a"), a_task("look")])

    assert results(outcomes) == {"a": "failed", "look": "failed"}
    assert not outcomes["a"].again
    assert world.applied == ["a"]


def test_a_task_that_reports_success_and_changed_nothing_has_failed() -> None:
    outcome = World(lying={"a"}).run([a_task("a")])["a"]

    assert outcome.result is Result.FAILED
    assert outcome.why == "changed, but it still differs (state: false -> true)"


def test_a_bug_in_one_task_is_told_and_keeps_nobody_else_from_work(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: Say) -> None:
        raise ZeroDivisionError("x")

    outcomes = World(during={"a": broken}).run(CHAIN)

    assert results(outcomes) == {"a": "failed", "b": "blocked", "c": "blocked", "x": "changed"}
    assert outcomes["a"].why == "a bug in protokube: ZeroDivisionError: x"
    assert "command a: unexpected error" in caplog.text


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            OSError(28, "No space left on device", "/srv/x"),
            "there is no room left for /srv/x (No space left on device)",
        ),
        (OSError(30, "Read-only file system", "/usr/y"), "/usr/y is on a file system that is read-only"),
        (
            PermissionError(1, "Operation not permitted", "/etc/z"),
            "/etc/z may not be changed (Operation not permitted)",
        ),
        (OSError(5, "Input/output error"), "a cannot be read or written: its disk fails (Input/output error)"),
        (OSError(99, "Strange", "/a"), "/a cannot be read or written (Strange)"),
    ],
)
def test_errors_of_the_kernel_are_one_sentence_with_the_path(error: OSError, why: str) -> None:
    def failing(_: Say) -> None:
        raise error

    outcome = World(during={"a": failing}).run([a_task("a")])["a"]

    assert outcome.result is Result.FAILED
    assert outcome.why.startswith(why)


def test_independent_tasks_run_at_one_time() -> None:
    meeting = threading.Barrier(3, timeout=60)

    def meet(_: Say) -> None:
        meeting.wait()

    world = World(during=dict.fromkeys("abc", meet))

    assert set(results(world.run([a_task(name) for name in "abc"])).values()) == {"changed"}


def test_tasks_of_a_lane_do_not() -> None:
    inside: list[str] = []
    most: list[int] = []

    def alone(say: Say) -> None:
        inside.append("x")
        most.append(len(inside))
        inside.pop()

    names = [str(n) for n in range(20)]
    world = World(during=dict.fromkeys(names, alone), lane="packages")
    world.run([a_task(name) for name in names], workers=8)

    assert world.applied == names
    assert set(most) == {1}


def test_an_interruption_ends_what_tells_progress_and_everything_has_an_outcome() -> None:
    control: RunControl = Control()

    def long(say: Say) -> None:
        control.stop()
        while True:
            say("working")
            control.stopping.wait(0.01)

    world = World(during={"a": long})
    outcomes = world.run(CHAIN[:3], control=control)

    assert results(outcomes) == {"a": "stopped", "b": "stopped", "c": "stopped"}
    assert results(world.run(CHAIN[:3], control=control)) == {"a": "stopped", "b": "stopped", "c": "stopped"}
    world.during.clear()
    assert set(results(world.run(CHAIN[:3])).values()) == {"changed"}


def test_work_that_ends_soon_after_an_interruption_counts() -> None:
    control: RunControl = Control()

    def short(_: Say) -> None:
        control.stop()
        assert control.stopping.wait(60)

    assert results(World(during={"a": short}).run(CHAIN[:2], control=control)) == {"a": "changed", "b": "stopped"}


def test_a_second_interruption_waits_for_nobody() -> None:
    control: RunControl = Control()
    held = threading.Event()

    def stuck(_: Say) -> None:
        control.stop()
        control.stop()
        held.wait(60)

    outcomes = World(during={"a": stuck}).run(CHAIN[:1], control=control)
    held.set()

    assert outcomes["a"].result is Result.STOPPED
    assert outcomes["a"].why == "nodeup was stopped while it was under way"


def test_a_task_that_waits_for_another_attempt_is_stopped_too() -> None:
    control: RunControl = Control()

    class Stopping(Heard):
        def waits(self, key: str, why: str, seconds: float) -> None:
            control.stop()

    outcomes = World(later={"a": 9}).run([a_task("a")], control=control, heard=Stopping())

    assert results(outcomes) == {"a": "stopped"}


def test_outcomes_have_their_times() -> None:
    outcomes = World().run(CHAIN)

    assert outcomes["b"].began >= outcomes["a"].began + outcomes["a"].seconds
    assert all(outcome.seconds >= 0 and outcome.cpu >= 0 for outcome in outcomes.values())


UNIT = Unit(name="web", running=True, restart_on=("command conf", "command cert"))
SERVED: list[Task] = [a_task("conf"), a_task("cert"), a_task("other"), UNIT]


def served(tmp_path: Path, **more: object) -> World:
    """A machine on which everything is as it should be, but what a test changes."""
    return World(true={"conf", "cert", "other", "web"})


def test_a_unit_restarts_once_if_something_that_it_reads_changed_and_else_not(tmp_path: Path) -> None:
    world = served(tmp_path)
    assert results(world.run(SERVED, notes=tmp_path))["web"] == "unchanged"

    world.true -= {"other"}
    assert results(world.run(SERVED, notes=tmp_path))["web"] == "unchanged"

    world.true -= {"conf", "cert"}
    outcome = world.run(SERVED, notes=tmp_path)["web"]
    assert outcome.result is Result.CHANGED
    assert str(outcome.changes[0]) in (
        "restart: started before command conf, command cert changed -> restarted",
        "restart: started before command cert, command conf changed -> restarted",
    )
    assert world.restarted == ["web"]
    assert results(world.run(SERVED, notes=tmp_path))["web"] == "unchanged"
    assert list(tmp_path.iterdir()) == []


def test_a_restart_that_a_blocked_run_could_not_make_is_made_by_the_next_one(tmp_path: Path) -> None:
    world = served(tmp_path)
    world.true -= {"conf", "cert"}
    world.refused = {"cert"}
    assert results(world.run(SERVED, notes=tmp_path))["web"] == "blocked"

    world.refused.clear()
    world.true.add("cert")
    world.run(SERVED, notes=tmp_path)

    assert world.restarted == ["web"]


def test_a_change_that_failed_and_changed_nothing_restarts_nobody(tmp_path: Path) -> None:
    world = served(tmp_path)
    world.true -= {"conf"}
    world.refused = {"conf"}
    world.run(SERVED, notes=tmp_path)

    world.refused.clear()
    world.true.add("conf")
    world.run(SERVED, notes=tmp_path)

    assert world.restarted == []


def test_a_restart_that_failed_is_made_by_the_next_run(tmp_path: Path) -> None:
    world = served(tmp_path)
    world.true -= {"conf"}
    world.refused = {"web"}
    assert results(world.run(SERVED, notes=tmp_path))["web"] == "failed"

    world.refused.clear()
    assert results(world.run(SERVED, notes=tmp_path))["web"] == "changed"
    assert world.restarted == ["web", "web"]


def test_a_unit_that_restarts_for_its_own_file_does_not_restart_again(tmp_path: Path) -> None:
    world = served(tmp_path)
    world.true -= {"conf", "web"}

    outcome = world.run(SERVED, notes=tmp_path)["web"]

    assert [change.what for change in outcome.changes] == ["state", "restart"]
    assert (world.started, world.restarted) == ({"web": 1.0}, [])


@pytest.mark.parametrize("running", [None, False])
def test_a_unit_that_somebody_else_starts_is_not_restarted(tmp_path: Path, running: bool | None) -> None:
    world = served(tmp_path)
    world.true -= {"conf"}
    tasks = [*SERVED[:3], replace(UNIT, running=running)]

    assert results(world.run(tasks, notes=tmp_path, plan=True))["web"] == "unchanged"
    assert results(world.run(tasks, notes=tmp_path))["web"] == "unchanged"
    assert world.restarted == []
    assert list(tmp_path.iterdir()) == []


def test_a_plan_tells_restarts_and_what_cannot_be_known_yet_and_changes_nothing(tmp_path: Path) -> None:
    world = served(tmp_path)
    world.true -= {"conf"}
    tasks = [*SERVED, a_task("look", "conf"), a_task("after", "look"), a_task("look2", "other")]
    world.refused = {"look", "look2"}
    world.true.add("after")

    outcomes = world.run(tasks, notes=tmp_path, plan=True)

    assert results(outcomes) == {
        "conf": "changed", "cert": "unchanged", "other": "unchanged", "web": "changed", "look": "changed",
        "after": "unchanged", "look2": "failed",
    }  # fmt: skip
    assert outcomes["look"].why == "cannot be told now: look must not be"
    assert [change.what for change in outcomes["web"].changes] == ["restart"]
    assert world.applied == []
    assert list(tmp_path.iterdir()) == []


@given(
    edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25),
    true=st.sets(st.integers(0, 9)),
    refused=st.sets(st.integers(0, 9)),
    later=st.dictionaries(st.integers(0, 9), st.integers(1, 4)),
)
def test_random_failures_block_exactly_their_dependents_and_the_next_run_ends_as_it_should(
    edges: Sequence[tuple[int, int]], true: set[int], refused: set[int], later: Mapping[int, int]
) -> None:
    after = {n: sorted({b for a, b in edges if a == n and b < n}) for n in range(10)}
    tasks = [a_task(str(n), *map(str, after[n])) for n in range(10)]
    world = World(
        true=set(map(str, true)), refused=set(map(str, refused)), later={str(n): count for n, count in later.items()}
    )

    outcomes = world.run(tasks)

    failing = {n for n in range(10) if n not in true and (n in refused or later.get(n, 0) >= 3)}
    blocked: set[int] = set()
    for n in range(10):
        if any(need in failing or need in blocked for need in after[n]):
            blocked.add(n)
    wanted = {
        str(n): "blocked" if n in blocked else "failed" if n in failing else "unchanged" if n in true else "changed"
        for n in range(10)
    }
    assert results(outcomes) == wanted
    world.refused, world.later = set(), {}
    assert {"failed", "blocked"}.isdisjoint(results(world.run(tasks)).values())
    assert set(results(world.run(tasks)).values()) == {"unchanged"}


def test_garbage_in_the_note_of_a_restart_costs_one_restart(tmp_path: Path) -> None:
    world = World(true={"web.service"})
    web = Unit(name="web.service", running=True)
    (tmp_path / "web.service").write_bytes(b"\xff\xfe\n")

    first = world.run([web], notes=tmp_path)

    assert (first["web.service"].result, world.restarted) == (Result.CHANGED, ["web.service"])
    assert results(world.run([web], notes=tmp_path)) == {"web.service": "unchanged"}
    assert list(tmp_path.iterdir()) == []
