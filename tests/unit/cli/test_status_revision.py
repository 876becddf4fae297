"""`protokube status` while a configuration is rolled out: what is lacking, and which host runs what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builders.view import CLUSTER, a_view, an_agent
from protokube.cli.render.status import outcome, render_changes, render_status
from protokube.cli.render.tree import view_tree
from protokube.errors import ExitCode
from protokube.launch.rollout import Failure, Rollout, State, Turn
from protokube.view.cluster import ClusterView

TURN = Turn(machine="i-1", name="master-1", at=5.0)
FAILURE = Failure(machine="i-1", name="master-1", revision=2, text="main/b: it does not run")


def a_rolling_view(
    state: State = State.ROLLING, revisions: tuple[int | None, ...] = (2, 1, None), **fields: Any
) -> ClusterView:
    agents = tuple(an_agent(number, revision=each) for number, each in enumerate(revisions))
    return a_view(agents=agents, rollout=Rollout(wanted=2, before=1, state=state, **fields))


def column(view: ClusterView) -> list[str]:
    """The column of revisions."""
    lines = render_status(view)
    start = next(number for number, line in enumerate(lines) if line.startswith("HOST "))
    at = lines[start].index("REVISION")
    return [line[at:].strip() for line in lines[start + 1 : start + 4]]


def test_a_cluster_is_not_ready_while_a_revision_is_rolled_out() -> None:
    view = a_rolling_view()

    assert list(view.lacks) == ["revision 2 is being rolled out"]
    assert not view.ready
    assert outcome(view) is ExitCode.TRY_LATER


def test_who_restarts_is_named() -> None:
    assert list(a_rolling_view(turn=TURN).lacks) == ["revision 2 is being rolled out, master-1 restarts"]


@pytest.mark.parametrize("state", [State.DONE, State.STOPPED])
def test_a_rollout_that_is_over_is_nothing_that_is_lacking(state: State) -> None:
    assert list(a_rolling_view(state, failure=FAILURE if state is State.STOPPED else None).lacks) == []


def test_a_rollout_that_stopped_needs_a_person_before_the_elected_master_says_so() -> None:
    """Seen once: `status` ended with 0 right after the rollout had stopped."""
    view = a_rolling_view(State.STOPPED, failure=FAILURE)

    assert [each.note.text for each in view.person] == ["revision 2 stopped at master-1: main/b: it does not run"]
    assert outcome(view) is ExitCode.REFUSED
    assert a_rolling_view(State.DONE).person == ()


def test_each_host_is_shown_with_its_revision_and_the_one_it_should_run() -> None:
    assert column(a_rolling_view()) == ["2", "1, not 2", "-"]
    assert column(a_rolling_view(State.DONE, (2, 2, 2))) == ["2", "2", "2"]


def test_the_revision_stands_before_the_api() -> None:
    agents = tuple(an_agent(number, revision=2, serving=True) for number in range(3))
    view = a_view(agents=agents, rollout=Rollout(wanted=2, state=State.DONE))
    header = next(line for line in render_status(view) if line.startswith("HOST "))

    assert header.split()[-2:] == ["REVISION", "API"]


def test_without_a_record_there_is_no_such_column_and_no_such_line() -> None:
    lines = render_status(a_view())

    assert not any(line.startswith(("HOST ", "revision")) and "REVISION" in line for line in lines)
    assert lines[1] == ""


@pytest.mark.parametrize(
    ("state", "line"),
    [(State.DONE, "revision 2"), (State.ROLLING, "revision 2: rolling"), (State.STOPPED, "revision 2: stopped")],
)
def test_the_second_line_says_which_revision_and_how_far_it_is(state: State, line: str) -> None:
    assert render_status(a_rolling_view(state))[1] == line


def test_a_change_of_the_revision_is_one_line_in_a_pipe_and_a_turn_is_none() -> None:
    before, after = a_rolling_view(State.DONE, (2, 2, 2)), a_rolling_view(State.ROLLING, (2, 2, 2))

    assert render_changes(before, after)[0] == "revision 2: rolling"
    assert render_changes(after, a_rolling_view(State.ROLLING, (2, 2, 2), turn=TURN)) == []
    assert render_changes(after, before) == [
        "revision 2",
        f"{CLUSTER}: ready (3 hosts, 3 of 3 members healthy)",
    ]


def test_the_data_have_the_record_and_the_revision_of_each_agent() -> None:
    tree = json.loads(json.dumps(view_tree(a_rolling_view(turn=TURN))))

    assert tree["rollout"]["turn"] == {"machine": "i-1", "name": "master-1", "at": 5.0, "revision": 0}
    assert (tree["rollout"]["wanted"], tree["rollout"]["before"], tree["rollout"]["state"]) == (2, 1, "rolling")
    assert [each["revision"] for each in tree["agents"]] == [2, 1, None]
    assert view_tree(a_view())["rollout"] is None
