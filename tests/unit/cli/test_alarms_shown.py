"""An alarm of etcd, as a user sees it: a state with its cause and the next step, never etcd's raw text."""

from __future__ import annotations

from dataclasses import replace

from builders.view import a_note, a_view, an_agent
from protokube.cli.render.explain_member import explain_member
from protokube.cli.render.members import members_tree, render_members
from protokube.cli.render.status import outcome, render_status
from protokube.cli.render.tree import member_tree
from protokube.errors import ExitCode
from protokube.members.alarms import Alarm, AlarmKind, meaning, state
from protokube.view.cluster import ClusterView
from protokube.view.values import AgentView

MB = 2**20
NAMES = {0xA0: "etcd-a", 0xA1: "etcd-b", 0xA2: "etcd-c"}
FULL = (Alarm(0xA1, "NOSPACE"),)
PERSON = a_note(
    "NOSPACE of etcd-b: current data fills it, not old revisions", step="space", about="main",
    saw="etcd-a 16.0 MiB of a quota of 16.0 MiB", hint="delete keys that are not needed",
)  # fmt: skip


def alarmed(alarms: tuple[Alarm, ...] = FULL, *agents: AgentView) -> ClusterView:
    """A cluster whose members answer behind a quorum, and report alarms."""
    view = a_view(**({"agents": agents} if agents else {}))
    message = meaning(alarms, NAMES)
    members = [
        replace(each, healthy=False, alarms=alarms, why=message, db_size=16 * MB, db_in_use=15 * MB)
        for each in view.members
    ]
    return replace(view, members=tuple(members))


def test_status_shows_the_alarm_as_the_state_of_its_members_and_why() -> None:
    lines = render_status(alarmed())

    assert sum("out of space" in line for line in lines) == 3
    why = "NOSPACE of etcd-b: a database reached its quota, so etcd takes no writes"
    assert f"  etcd-a on master-0 is not healthy: {why}" in lines
    assert outcome(alarmed()) is ExitCode.TRY_LATER
    assert member_tree(alarmed().members[0])["alarms"] == ["NOSPACE"]


def test_the_members_are_still_listed_with_their_state_and_the_alarm_below() -> None:
    lines = render_members(alarmed())

    assert [line.split()[2:5] for line in lines[2:5]] == [["out", "of", "space"]] * 3
    assert lines[5] == "alarm: NOSPACE of etcd-b: a database reached its quota, so etcd takes no writes"
    assert [each["alarms"] for each in members_tree(alarmed())["main"]] == [["NOSPACE"]] * 3


def test_explain_gives_the_cause_the_database_and_what_the_agents_do() -> None:
    waits = a_note("out of space (NOSPACE of etcd-b): the members delete old revisions", step="space", about="main")
    lines = explain_member(alarmed(FULL, an_agent(0, waits=(waits,))), "main/a").lines()

    why = "NOSPACE of etcd-b: a database reached its quota, so etcd takes no writes"
    assert f"  etcd        out of space: {why}" in lines
    assert "  database    16 MiB, 15 MiB of it in use" in lines
    assert any("the members delete old revisions" in line for line in lines)
    assert lines[-1].startswith("next: the agents compact and defragment etcd")


def test_explain_says_what_a_person_has_to_do() -> None:
    lines = explain_member(alarmed(FULL, an_agent(0, person=(PERSON,))), "main/c").lines()

    assert lines[-1] == "next: a person acts: delete keys that are not needed"


def test_corruption_is_a_state_of_its_own_and_the_worse_one() -> None:
    both = (*FULL, Alarm(0xA2, "CORRUPT"))

    assert state(both) == "corrupt"
    assert state(()) == ""
    assert Alarm(1, "NEW").kind is AlarmKind.UNKNOWN
    assert state([Alarm(1, "NEW")]) == "alarm"
    assert meaning([Alarm(9, "NEW")], NAMES) == "NEW of 9: an alarm that is not known here"
    view = alarmed(both)
    assert sum("corrupt" in line for line in render_status(view)) >= 3
    assert explain_member(view, "main/a").lines()[-1] == "next: a person acts: the agents report what there is to do"
