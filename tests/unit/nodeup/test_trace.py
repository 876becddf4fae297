"""Traces: written and read again, the critical path, and what the report shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protokube.cli.render.nodeup import (
    exit_code,
    outcome_line,
    plan_line,
    plan_summary,
    render_report,
    report_tree,
    summary,
)
from protokube.errors import ExitCode, NotFound, Refused
from protokube.nodeup.changes import Change, Outcome, Result
from protokube.nodeup.trace import Trace, critical_path, end_of, from_tree, keep, numbers, read, to_tree

MISSING = (Change("content", "missing", "12 bytes"), Change("mode", "0o600", "0o644"))


def outcome(key: str, began: float = 0, seconds: float = 0, result: Result = Result.CHANGED, why: str = "") -> Outcome:
    changes = MISSING if result is Result.CHANGED else ()
    return Outcome(key=key, result=result, changes=changes, why=why, began=began, seconds=seconds, cpu=0.25)


OUTCOMES = (
    outcome("asset kubelet", 0, 4),
    outcome("file /etc/a", 0, 1),
    outcome("packages containerd", 1.5, 9),
    outcome("unit containerd.service", 11, 1),
    outcome("installed /usr/bin/kubelet", 4, 0.5, Result.UNCHANGED),
    outcome("user etcd", 0, 2, Result.FAILED, "the user etcd exists with other values (id 5); `usermod`"),
    outcome("directory /var/lib/etcd", 2, 0, Result.BLOCKED, "user etcd"),
)
NEEDS: Mapping[str, tuple[str, ...]] = {
    **{each.key: () for each in OUTCOMES},
    "packages containerd": ("file /etc/a",),
    "unit containerd.service": ("packages containerd", "asset kubelet"),
    "installed /usr/bin/kubelet": ("asset kubelet",),
    "directory /var/lib/etcd": ("user etcd",),
}
TRACE = Trace(version="1.2.3", began="2026-01-02T03:04:05Z", seconds=12.0, end="failed", outcomes=OUTCOMES, needs=NEEDS)


def test_the_critical_path_is_the_chain_that_ended_last_with_its_waits() -> None:
    path = critical_path(OUTCOMES, NEEDS)

    assert [(step.outcome.key, step.waited) for step in path] == [
        ("file /etc/a", 0.0), ("packages containerd", 0.5), ("unit containerd.service", 0.5)
    ]  # fmt: skip
    assert critical_path((), {}) == ()


def test_what_was_stopped_under_way_is_on_the_critical_path_and_what_was_not_tried_is_not() -> None:
    outcomes = (outcome("a", 0, 1), outcome("b", 1, 90, Result.STOPPED), outcome("c", 91, 0, Result.STOPPED))

    path = critical_path(outcomes, {"a": (), "b": ("a",), "c": ("b",)})

    assert [step.outcome.key for step in path] == ["a", "b"]


@given(
    edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25),
    lengths=st.lists(st.floats(0, 10), min_size=10, max_size=10),
)
def test_with_room_for_everything_the_critical_path_is_the_longest_one(
    edges: list[tuple[int, int]], lengths: list[float]
) -> None:
    needs = {str(n): tuple(str(b) for a, b in edges if a == n and b < n) for n in range(10)}
    ends: dict[str, float] = {}
    outcomes = []
    for n in range(10):
        began = max((ends[need] for need in needs[str(n)]), default=0.0)
        ends[str(n)] = began + lengths[n]
        outcomes.append(outcome(str(n), began, lengths[n]))

    path = critical_path(outcomes, needs)

    assert sum(step.outcome.seconds for step in path) == pytest.approx(max(ends.values()))
    assert all(step.waited == pytest.approx(0) for step in path)
    assert [step.outcome.key in needs[after.outcome.key] for step, after in pairwise(path)] == (
        [True] * (len(path) - 1)
    )


def test_a_trace_is_read_as_it_was_written() -> None:
    assert from_tree(json.loads(json.dumps(to_tree(TRACE)))) == TRACE


def test_traces_are_numbered_and_the_newest_one_is_read(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nodeup has not run on this machine"):
        read(tmp_path / "none")
    for _ in range(12):
        keep(tmp_path, TRACE)

    assert numbers(tmp_path) == list(range(3, 13))
    assert read(tmp_path) == (12, TRACE)
    assert read(tmp_path, 5) == (5, TRACE)
    with pytest.raises(NotFound, match="there is no trace of run 2"):
        read(tmp_path, 2)


def test_what_a_killed_run_began_to_write_is_removed_by_the_next_one(tmp_path: Path) -> None:
    (tmp_path / ".000001.json.0123456789abcdef").write_bytes(b"{")
    (tmp_path / "notes.txt").write_bytes(b"theirs")

    keep(tmp_path, TRACE)

    assert sorted(each.name for each in tmp_path.iterdir()) == ["000001.json", "notes.txt"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no trace"), ("{", "is no trace"), ("[]", "is no trace"), ("null", "is no trace"),
        ('{"format": 1}', "is no trace"), ('{"format": 2}', "another version"),
        (json.dumps({**to_tree(TRACE), "tasks": [{"key": 1}]}), "is no trace"),
        (json.dumps({**to_tree(TRACE), "tasks": [{**to_tree(TRACE)["tasks"][0], "result": "odd"}]}), "is no trace"),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_told_as_such(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "000001.json").write_text(text)

    with pytest.raises(Refused, match=message):
        read(tmp_path)


def test_how_a_run_ended_in_one_word() -> None:
    assert end_of(OUTCOMES) == "failed"
    assert end_of(OUTCOMES[:5]) == "done"
    assert end_of([outcome("a", result=Result.STOPPED), *OUTCOMES]) == "stopped"


def test_lines_of_a_run_say_what_changed_and_why_not() -> None:
    assert [outcome_line(each) for each in OUTCOMES[3:]] == [
        "changed  unit containerd.service: content: missing -> 12 bytes, mode: 0o600 -> 0o644 (1.00 s)",
        "",
        "failed   user etcd: the user etcd exists with other values (id 5); `usermod`",
        "blocked  directory /var/lib/etcd: needs user etcd",
    ]
    assert summary(OUTCOMES, 4.06) == "nodeup: 4 changed, 1 unchanged, 1 failed, 1 blocked in 4.1 s"
    assert summary(OUTCOMES[4:5], 0.1) == "nodeup: 0 changed, 1 unchanged in 0.1 s"
    assert outcome_line(outcome("a", result=Result.STOPPED, why="nodeup was stopped")).startswith("stopped  a: ")


def test_lines_of_a_plan_say_what_would_change() -> None:
    later = Outcome(key="unit a", result=Result.CHANGED, changes=(Change("state", "x", "y"),), why="cannot be told now")

    assert plan_line(later) == "would change  unit a: state: x -> y; cannot be told now"
    assert plan_line(OUTCOMES[5]).startswith("would fail    user etcd: the user etcd exists")
    assert plan_line(OUTCOMES[4]) == ""
    assert plan_summary(OUTCOMES[:6]) == "nodeup: 4 would change, 1 unchanged, 1 would fail"
    assert plan_summary(OUTCOMES[4:5]) == "nodeup: nothing would change; 1 task looked at"


def test_the_exit_code_says_who_has_to_act() -> None:
    failed = outcome("a", result=Result.FAILED)
    again = Outcome(key="b", result=Result.FAILED, again=True)

    assert exit_code(OUTCOMES[:5]) is ExitCode.OK
    assert exit_code(OUTCOMES[:5], plan=True) is ExitCode.DIFFERENT
    assert exit_code(OUTCOMES[4:5], plan=True) is ExitCode.OK
    assert exit_code([again]) is ExitCode.TRY_LATER
    assert exit_code([failed, again]) is ExitCode.REFUSED
    assert exit_code([failed, outcome("c")], plan=True) is ExitCode.REFUSED
    assert exit_code([failed, outcome("c", result=Result.STOPPED)]) is ExitCode.STOPPED


def test_the_report_has_the_critical_path_the_slowest_tasks_and_what_was_not_done() -> None:
    assert render_report(7, TRACE) == [
        "run 7 of protokube 1.2.3, begun 2026-01-02T03:04:05Z: failed after 12.00 s",
        "4 changed, 1 unchanged, 1 failed, 1 blocked",
        "",
        "critical path, 12.00 s:",
        "BEGAN    TOOK    WAITED  TASK",
        "0.00 s   1.00 s  0.00 s  file /etc/a",
        "1.50 s   9.00 s  0.50 s  packages containerd",
        "11.00 s  1.00 s  0.50 s  unit containerd.service",
        "",
        "slowest tasks:",
        "TOOK    CPU     RESULT     TASK",
        "9.00 s  0.25 s  changed    packages containerd",
        "4.00 s  0.25 s  changed    asset kubelet",
        "2.00 s  0.25 s  failed     user etcd",
        "1.00 s  0.25 s  changed    file /etc/a",
        "1.00 s  0.25 s  changed    unit containerd.service",
        "0.50 s  0.25 s  unchanged  installed /usr/bin/kubelet",
        "",
        "not done:",
        "failed   user etcd: the user etcd exists with other values (id 5); `usermod`",
        "blocked  directory /var/lib/etcd: needs user etcd",
    ]


def test_the_report_of_a_run_that_tried_nothing_says_why() -> None:
    trace = Trace(version="1", began="now", seconds=0.1, end="error", error="no setup; give one", needs={})

    assert render_report(1, trace) == [
        "run 1 of protokube 1, begun now: error after 0.10 s", "nothing was tried: no setup; give one"
    ]  # fmt: skip


def test_the_report_as_data_is_the_trace_with_its_critical_path() -> None:
    tree = report_tree(7, TRACE)

    assert tree["run"] == 7
    assert tree["criticalPath"][1] == {"key": "packages containerd", "waited": 0.5}
    assert tree["tasks"] == to_tree(TRACE)["tasks"]


def test_a_trace_in_which_tasks_need_each_other_still_has_an_end() -> None:
    """Somebody edited it."""
    circle = {"asset kubelet": ("file /etc/a", "asset kubelet"), "file /etc/a": ("asset kubelet",)}

    path = critical_path(OUTCOMES[:2], circle)

    assert [step.outcome.key for step in path] == ["file /etc/a", "asset kubelet"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, "x", None, {}])
def test_seconds_that_are_no_number_are_no_trace(value: object) -> None:
    tree = to_tree(TRACE)
    tree["tasks"][0]["began"] = value

    with pytest.raises(Refused, match="this is no trace of nodeup"):
        from_tree(tree)
