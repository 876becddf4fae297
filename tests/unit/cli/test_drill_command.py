"""`protokube drill`: how a verdict is told, as text and as data, and what the shell learns."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import redirect_stderr, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from builders.command import Call
from builders.view import ShortFolder
from clusters.drill import PretendGround, healthy, unhealthy
from protokube.cli.drill import DRILLS, carry_out
from protokube.cli.render.drill import outcome, render_verdict, step_line, verdict_tree
from protokube.errors import ExitCode
from protokube.local.drill import values
from protokube.local.drill.values import OldHolder, Step, Verdict

GOOD = Verdict(
    drill="kill-master", target="master-0, which holds etcd-a on vol-aaaa", broken=(), missing=(),
    steps=(Step(0.0, "killed master-0"), Step(1.234, "etcd-a is healthy on master-3")), acknowledged=1203,
    unanswered=4, there=1203, longest_gap=0.526, gap_began=0.1, same_list=True, replaced=None,
    lists=(b'[{"name": "x"}]', b"[]"),
)  # fmt: skip
OLD = OldHolder(host="master-0", ran=True, attempts=5, acknowledged=(), landed=("/x",), gone_after=0.4)


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with ShortFolder() as folder:
        monkeypatch.setenv("PROTOKUBE_STATE", str(folder))
        yield folder


def test_a_good_verdict_in_a_few_lines() -> None:
    assert render_verdict(GOOD) == [
        "kill-master: master-0, which holds etcd-a on vol-aaaa",
        "writes: 1,203 acknowledged, all of them read back; 4 without an answer; longest gap 0.53 s",
        "members: the same before and after, byte by byte",
        "good: every promise was kept",
    ]


def test_what_was_broken_and_what_was_awaited_are_listed_and_nothing_is_good() -> None:
    bad = replace(
        GOOD, broken=("3 acknowledged writes are lost: 1, 2, 3",), missing=("etcd-a to be healthy",), there=1200,
        old=OLD, same_list=False,
    )  # fmt: skip

    assert render_verdict(bad)[1:] == [
        "writes: 1,203 acknowledged, only 1,200 of them read back; 4 without an answer; longest gap 0.53 s",
        "members: another list than before",
        "the old holder: 5 writes tried through it, 0 acknowledged, 1 in the cluster",
        "broken promises:",
        "  3 acknowledged writes are lost: 1, 2, 3",
        "still waited for when the time was up:",
        "  etcd-a to be healthy",
    ]


def test_a_member_that_had_to_join_anew_is_named() -> None:
    lists = (b'[{"name": "etcd-a", "id": "1"}]', b'[{"name": "etcd-a", "id": "2"}]')
    verdict = replace(GOOD, same_list=False, replaced="etcd-a", lists=lists)

    assert render_verdict(verdict)[2] == "members: the same names as before; etcd-a joined anew, with another id"
    assert render_verdict(replace(verdict, lists=(lists[0], b"[]")))[2] == "members: another list than before"


def test_the_exit_code_says_good_broken_or_too_late() -> None:
    assert outcome(GOOD) is ExitCode.OK
    assert outcome(replace(GOOD, missing=("x",))) is ExitCode.TRY_LATER
    assert outcome(replace(GOOD, missing=("x",), broken=("y",))) is ExitCode.REFUSED


def test_steps_stand_below_each_other_with_their_times() -> None:
    assert [step_line(each) for each in GOOD.steps] == [
        "    0.00 s  killed master-0",
        "    1.23 s  etcd-a is healthy on master-3",
    ]


def test_the_verdict_as_data_holds_all_of_it() -> None:
    tree = verdict_tree(replace(GOOD, old=OLD))

    assert json.loads(json.dumps(tree)) == tree
    assert (tree["good"], tree["steps"][1]) == (True, {"seconds": 1.234, "text": "etcd-a is healthy on master-3"})
    assert tree["writes"] == {
        "acknowledged": 1203, "readBack": 1203, "unanswered": 4, "longestGap": 0.526, "longestGapBegan": 0.1,
    }  # fmt: skip
    assert tree["members"] == {"same": True, "before": [{"name": "x"}], "after": []}
    assert tree["oldHolder"]["landed"] == ["/x"]
    assert "oldHolder" not in verdict_tree(GOOD)


def test_the_help_names_every_drill_with_what_it_does(call: Call) -> None:
    help_text = " ".join(call("drill", "--help").out.split())

    assert tuple(values.DRILLS) == DRILLS
    for name, text in values.DRILLS.items():
        assert f"{name} {text}" in help_text


def test_a_drill_that_there_is_not_is_turned_away(call: Call) -> None:
    answer = call("drill", "kill-everything")

    assert answer.code == ExitCode.INVALID
    assert "'kill-master', 'lose-volume'" in answer.err


def test_without_a_cluster_there_is_no_drill(call: Call, state: Path) -> None:
    answer = call("drill", "kill-master")

    assert answer.code == ExitCode.INVALID
    assert "protokube up" in answer.err


def test_a_drill_whose_steps_nobody_reads_goes_on_to_its_verdict() -> None:
    ground = PretendGround()
    ground.reactions["cut_host"] = lambda arguments: ground.after(
        0.2, unhealthy("a") if arguments["down"] else healthy("a")
    )
    reader, writer = os.pipe()
    os.close(reader)

    with suppress(BrokenPipeError), open(writer, "w") as broken, redirect_stderr(broken):  # noqa: PTH123
        verdict = carry_out("partition", ground, "a", 60, quiet=False)

    assert verdict.good, verdict
    assert ground.calls[-1] == ("cut_host", {"host": "master-0", "down": False})
