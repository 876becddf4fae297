"""`protokube drill watch`: what it shows of a fault that somebody else causes, and what the shell learns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from builders.command import Call
from builders.view import a_view, but
from protokube.cli.drill import tell
from protokube.cli.render.recovery import outcome, recovery_tree, render_recovery
from protokube.errors import ExitCode
from protokube.local.drill.values import Step
from protokube.view.recovery import Recovery
from unit.cli.test_seen_in_store import fill, fresh
from unit.view.test_recovery import healed, host_gone, later


def watched(*, end: bool = True) -> tuple[Recovery, list[Step]]:
    recovery, steps = Recovery(a_view()), []
    looks = [later(a_view(), 1), later(host_gone(a_view()), 4), later(healed(a_view()), 10)]
    for view in looks if end else looks[:-1]:
        steps += tell(recovery, view, recovery.before.at, quiet=True)
    return recovery, steps


def test_a_recovery_is_told_in_a_few_lines() -> None:
    recovery, _ = watched()

    assert render_recovery(recovery) == [
        "watch: dev.local",
        "lost:",
        "  master-0 is gone",
        "  vol-aaaa of main/a left master-0",
        "  etcd-a is not healthy",
        "everything was ready again 6.0 s after the first loss was seen",
        "good: the members are the same, and no volume went back to an older epoch",
    ]
    assert outcome(recovery) is ExitCode.OK


def test_the_steps_count_from_the_first_loss() -> None:
    _, steps = watched()

    assert {each.at for each in steps} == {0.0, 6.0}
    assert "master-0 (10.77.0.11) is declared dead" in [each.text for each in steps]


def test_what_is_still_waited_for_is_listed() -> None:
    recovery, _ = watched(end=False)

    assert "still waited for when the time was up:" in render_recovery(recovery)
    assert outcome(recovery) is ExitCode.TRY_LATER


def test_a_broken_promise_is_exit_code_4() -> None:
    recovery = Recovery(a_view())
    recovery.feed(later(replace(a_view(), disks=but(a_view().disks, 0, epoch=0)), 1))

    assert "broken promises:" in render_recovery(recovery)
    assert outcome(recovery) is ExitCode.REFUSED


def test_a_store_is_named_as_the_reason_for_late_times() -> None:
    recovery = Recovery(replace(a_view(), source="s3://bucket"))
    recovery.feed(later(healed(a_view()), 30))

    assert any("a store shows changes up to a minute late" in each for each in render_recovery(recovery))


def test_the_data_holds_all_of_it() -> None:
    tree = recovery_tree(*watched())

    assert json.loads(json.dumps(tree)) == tree
    assert (tree["good"], tree["recoveredAfter"], tree["lost"][0]) == (True, 6.0, "master-0 is gone")
    assert {"seconds": 0.0, "text": "master-0 (10.77.0.11) is declared dead"} in tree["steps"]


def test_where_nothing_is_lost_it_says_so(call: Call, tmp_path: Path) -> None:
    folder = fill(tmp_path / "store", *(fresh(number) for number in range(3)))

    answer = call("drill", "watch", "--store", f"file://{folder}", "--timeout", "0s")

    assert answer.code == ExitCode.TRY_LATER
    assert "dev.local is ready: break something now" in answer.err
    assert "a loss: nothing was lost while it was watched" in answer.out


def test_a_cluster_that_is_not_ready_is_not_watched(call: Call, tmp_path: Path) -> None:
    folder = fill(tmp_path / "store", fresh(0), fresh(1))

    answer = call("drill", "watch", "--store", f"file://{folder}")

    assert answer.code == ExitCode.TRY_LATER
    assert "a drill needs a ready cluster" in answer.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("kill-master", "--store", "file:///nowhere"), "kill-master breaks something, and that needs a local cluster"),
        (("watch", "--member", "a"), "--member is for drills that break something"),
        (("watch", "--store", "file:///nowhere/at/all"), "there is no cluster in"),
    ],
)
def test_what_cannot_be_watched_is_turned_away(call: Call, words: tuple[str, ...], says: str) -> None:
    answer = call("drill", *words)

    assert answer.code == ExitCode.INVALID
    assert says in answer.err
