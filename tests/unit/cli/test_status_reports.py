"""`protokube status` with reports that are overdue, that contradict each other, or that ask for a person."""

from __future__ import annotations

import io
from dataclasses import replace

from builders.view import CLUSTER, NOW, a_host, a_note, a_view, an_agent, but
from protokube.cli.render.status import outcome, render_changes, render_status
from protokube.cli.render.tree import view_tree
from protokube.cli.shared.screen import Screen
from protokube.cli.status import stay
from protokube.errors import ExitCode
from protokube.view.cluster import ClusterView

VIEW = a_view()
REFUSED = a_note(
    "vol-bbbb was marked 'formed' and turns up blank", about="main/b", saw="zeros", hint="look for a copy of the disk"
)


def last_of(*views: ClusterView) -> ClusterView:
    """The view with which `--wait` ends."""
    return stay(iter(views), Screen(io.StringIO(), redraw=False))


def test_a_report_that_is_overdue_is_shown_as_last_known() -> None:
    agents = (an_agent(0, age=75.0, serving=True), an_agent(1, elected=True, serving=True), an_agent(2, serving=False))
    frozen = a_view(agents=agents)
    lines = render_status(frozen)

    assert lines[0] == f"{CLUSTER}: not ready (3 hosts, 3 of 3 members healthy)"
    assert lines[2:6] == [
        "HOST      GROUP    ADDRESS     STATE         REPORT             ROUND           API",
        "master-0  masters  10.77.0.11  up for 5 min  75 s ago, overdue  7, was elected  was ready",
        "master-1  masters  10.77.0.12  up for 5 min  2 s ago            7, elected      ready",
        "master-2  masters  10.77.0.13  up for 5 min  2 s ago            7               not ready",
    ]
    assert lines[8] == "vol-aaaa  main/a  20 GiB  master-0  serving, last known  formed  1"
    assert "  the agent of master-0 has reported nothing for 75 s" in lines
    assert outcome(frozen) is ExitCode.TRY_LATER
    tree = view_tree(frozen)
    assert [each["elected"] for each in tree["agents"]] == [False, True, False]
    assert [each["serving"] for each in tree["agents"]] == [None, True, False]
    assert [each["stale"] for each in tree["agents"]] == [True, False, False]
    assert tree["agents"][0]["lastKnown"] == {"elected": True, "serving": True}
    assert [each["phaseIsCurrent"] for each in tree["disks"]] == [False, True, True]
    assert (tree["state"], tree["exitCode"]) == ("not ready", 3)


def test_of_two_that_claim_to_be_elected_neither_is_shown_as_elected() -> None:
    two = a_view(agents=but(VIEW.agents, 1, elected=True))
    rows = "\n".join(render_status(two))

    assert rows.count("7, claims to be elected") == 2
    assert "7, elected" not in rows
    assert "  master-0 and master-1 both report that they are elected" in rows
    assert not any(each["elected"] for each in view_tree(two)["agents"])


def test_what_an_overdue_report_needed_is_said_as_last_known() -> None:
    old = a_view(agents=but(VIEW.agents, 1, age=75.0, person=(REFUSED,)))

    assert "  master-1 (last known), main/b: vol-bbbb was marked 'formed' and turns up blank" in render_status(old)
    assert outcome(old) is ExitCode.REFUSED


def test_an_agent_of_a_dead_host_that_reports_on_is_said_and_keeps_nobody_from_being_ready() -> None:
    hosts = (*VIEW.hosts, a_host(3, dead=True, address="10.77.0.14"))
    zombie = an_agent(0, host="master-3", elected=True, phases={}, mounted=())
    view = a_view(hosts=hosts, agents=(*VIEW.agents, zombie))

    assert view.ready
    assert render_status(view)[-2:] == [
        "contradictions:",
        "  master-3 is declared dead, and its agent reported 2 s ago",
    ]


def test_an_agent_that_falls_silent_and_comes_back_is_one_line_each() -> None:
    silent = a_view(agents=but(VIEW.agents, 2, age=31.0))
    longer = a_view(agents=but(VIEW.agents, 2, age=32.0))

    assert render_changes(VIEW, silent) == [
        "the agent of master-2 has reported nothing for 31 s",
        f"{CLUSTER}: not ready (3 hosts, 3 of 3 members healthy)",
    ]
    assert render_changes(silent, longer) == []
    assert render_changes(longer, VIEW)[0] == "the agent of master-2 reports again"


def test_what_several_agents_need_in_the_same_words_is_said_once_with_their_names() -> None:
    alarm = a_note("its members do not hold the same data", step="agreement", about="main", hint="look")
    view = a_view(agents=tuple(replace(each, person=(alarm,)) for each in VIEW.agents))
    lines = render_status(view)

    assert lines[lines.index("needs a person:") :] == [
        "needs a person:",
        "  master-0, master-1, master-2, main: its members do not hold the same data",
        "    hint: look",
    ]


def test_a_cluster_that_serves_and_needs_a_person_for_a_while_ends_the_waiting_with_the_code_for_that() -> None:
    serving = a_view(agents=but(VIEW.agents, 0, person=(REFUSED,)))
    seen = last_of(*(replace(serving, at=NOW + second) for second in range(20)))

    assert (seen.at, outcome(seen)) == (NOW + 5, ExitCode.REFUSED)


def test_a_need_whose_words_change_while_it_stands_counts_from_its_beginning() -> None:
    counting = [replace(REFUSED, text=f"tried {number} times") for number in range(20)]
    views = [
        a_view(at=NOW + second, agents=but(VIEW.agents, 1, person=(note,), age=float(second)))
        for second, note in enumerate(counting)
    ]

    assert last_of(*views).at == NOW + 5
